/* SPDX-License-Identifier: Apache-2.0 */
/* Behind wasm_exec.js and modules.js: a worker that runs the simulator. The first message is the
 * compiled program, each further one asks for a run. */
let started;
onmessage = async ({data}) => {
	if (data instanceof WebAssembly.Module) {
		const go = new Go(), modules = newModules();
		go.importObject.modules = modules.imports;
		started = WebAssembly.instantiate(data, go.importObject).then((instance) => {
			modules.startWith(instance.exports);
			go.run(instance);
		});
		return;
	}
	await started;
	postMessage(JSON.parse(simulate(data.scheme, data.burst, data.seed)));
};
