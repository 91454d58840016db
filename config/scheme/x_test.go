package scheme
import ("testing";"fmt")
func TestX(t *testing.T){
 c:=Builtin(); fmt.Println(c.Names())
 for _,s:=range c.Schemes(){ fmt.Printf("%s control %s section %s %s sender %s\n",s.Name,s.Control,s.Section,s.Title,s.Sender)
  v,p:=s.Object.Resolve(Settings{},Network{40e9,60000,1000}); if p!=nil {t.Error(p)}
  for _,q:=range s.Object.Params { fmt.Printf("   %-18s %-8s %-22s default %s = %s\n",q.Key,q.Kind,q.Range,q.Default,v.Get(q.Key)) }
  fmt.Printf("  %+v\n",s.Setup(v))
  for n:=range s.Object.sizes { b,err:=v.Bytes(n,Network{40e9,60000,1000},false); fmt.Println("  ",n,len(b),b[:min(len(b),64)],err) }
  for _,q:=range s.Object.Stats { fmt.Println("   stat",q.Key,q.Kind,q.offset) }
 }
}
func BenchmarkB(b *testing.B){ for range b.N { c:=&Catalogue{}; d,_:=objectFiles.ReadFile("objects/pcn.o"); if err:=c.add(d);err!=nil{b.Fatal(err)} } }
