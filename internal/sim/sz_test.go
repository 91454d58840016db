package sim
import ("testing";"os")
func TestSz(t *testing.T){
 text,_ := os.ReadFile("testdata/large.yaml")
 e := parse(t, string(text))
 w := worldsOf(t, e, e.Schemes[0], 1)
 if err := w.run(t.Context(), func(float64) {}); err != nil { t.Fatal(err) }
 t.Log("ports", len(w.ports)*640/1024, "KB; packets", cap(w.packets.packets)*64/1024, "KB; chunks", cap(w.events.chunks)*128/1024, "core", w.core.module.size()/1024, "flows", len(w.transport.flows)*440/1024, "steps", len(w.transport.steps)*4/1024, "running", cap(w.events.running)*16/1024)
 if w.transport.control!=nil { t.Log("control", w.transport.control.module.size()/1024) }
 if w.transport.notifier!=nil { t.Log("notifier", w.transport.notifier.module.size()/1024) }
}
