/* SPDX-License-Identifier: Apache-2.0 */
/* The page with the simulator. It opens with figures that were simulated when the site was made. The
 * program is loaded when they are drawn and the browser is idle, as compiling it takes seconds; and
 * it runs what they show once, so that a reader's first choice is as quick as further ones. */
(() => {
	"use strict";
	const form = document.getElementById("simulator");
	const {burst, seed, scheme, kb, mb, state, ["seed-is"]: seedIs} = form.elements;
	const place = document.getElementById("simulated");
	const tell = (text) => { state.value = text; };

	function show({heading, svg}) {
		const figure = document.createElement("figure");
		figure.innerHTML = svg; /* of our own program */
		figure.prepend(Object.assign(document.createElement("figcaption"), {textContent: heading + "."}));
		return figure;
	}

	/* Loads the program into a worker, once. */
	let loading;
	const load = () => loading ??= new Promise((done, failed) => {
		const script = document.createElement("script");
		script.src = "simulator-program.js";
		script.onload = done;
		script.onerror = () => failed(new Error("simulator-program.js is missing beside this page"));
		document.head.append(script);
	}).then(async () => {
		const packed = await fetch("data:application/octet-stream;base64," + simulatorProgram);
		const program = await WebAssembly.compileStreaming(new Response(
			packed.body.pipeThrough(new DecompressionStream("gzip")),
			{headers: {"Content-Type": "application/wasm"}}));
		const worker = new Worker(URL.createObjectURL(
			new Blob([simulatorWorker], {type: "text/javascript"})));
		worker.onerror = (e) => tell("The simulator failed: " + e.message);
		worker.onmessage = ({data}) => finished(data);
		worker.postMessage(program);
		return worker;
	});

	/* Runs what the form says. A run can't be stopped: what was asked meanwhile follows it. */
	let running = false, again = false, warming = false, asked = 0, began = 0;
	async function start() {
		running = true;
		again = false;
		began = asked;
		try {
			(await load()).postMessage({scheme: scheme.value, burst: Number(burst.value),
				seed: Number(seed.value)});
		} catch (e) {
			tell("The simulator failed: " + e.message);
		}
	}
	function run() {
		kb.value = burst.value;
		mb.value = (14 * 16 * burst.value / 1000).toFixed(1);
		seedIs.value = seed.value;
		asked = performance.now();
		again = running;
		tell(warming ? "The simulator is loaded, once." : "It runs.");
		if (!running) start();
	}
	/* Loads the program, and runs what the figures show already. */
	function warm() {
		if (running) return;
		warming = true;
		start();
	}
	function finished({error, pictures}) {
		running = false;
		if (warming) {
			warming = false;
			if (again) start();
			else tell("The simulator is ready: choose a burst, a scheme or a seed.");
			return;
		}
		if (error) place.textContent = error;
		else place.replaceChildren(...pictures.map(show));
		const seconds = (performance.now() - began) / 1000;
		tell(`20 ms of a network of 20 nodes, twice, in ${seconds.toFixed(1)} s.`);
		if (again) start();
	}
	form.oninput = run;
	(window.requestIdleCallback || setTimeout)(warm);
	tell("Choose a burst, a scheme or a seed: it is simulated here.");
})();
