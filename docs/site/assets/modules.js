/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the algorithms' wasm modules for the simulator, which is a wasm module itself and can't see
 * the memory of others. internal/sim/machine_js.go declares what it imports from here. */
function newModules() {
	"use strict";
	const wide = 0x7e; /* i64, in the format of wasm */
	let program; /* what the simulator exports */
	let mem, view; /* its memory */
	let modules = [], functions = [], provided = {}, failed = "";

	function own() {
		/* It grows, and then has another buffer: the old one is empty. */
		if (view.buffer.byteLength === 0) view = new DataView(mem.buffer);
		return view;
	}
	const bytes = (at, size) => new Uint8Array(mem.buffer, at >>> 0, size);
	const text = (at, size) => new TextDecoder().decode(bytes(at, size));

	/* Returns the types of the functions that a module exports, which JavaScript does not tell. */
	function typesOf(code) {
		let at = 8; /* behind the magic number and the version */
		const number = () => {
			let value = 0, shift = 0, byte;
			do {
				byte = code[at++];
				value |= (byte & 127) << shift;
				shift += 7;
			} while (byte & 128);
			return value >>> 0;
		};
		const list = (read) => Array.from({length: number()}, read);
		const name = () => new TextDecoder().decode(Uint8Array.from(list(() => code[at++])));
		const limits = () => {
			const hasMost = number() & 1;
			number();
			if (hasMost) number();
		};
		const types = [], defined = [], exported = {};
		const imported = () => {
			name();
			name();
			switch (code[at++]) {
			case 0:
				defined.push(types[number()]);
				break;
			case 1:
				at++;
				limits();
				break;
			case 2:
				limits();
				break;
			default:
				at += 2;
			}
		};
		const sections = {
			1: () => list(() => {
				at++;
				types.push({params: list(() => code[at++]), results: list(() => code[at++])});
			}),
			2: () => list(imported),
			3: () => list(() => defined.push(types[number()])),
			7: () => list(() => {
				const of = name(), kind = code[at++], index = number();
				if (kind === 0) exported[of] = defined[index];
			}),
		};
		while (at < code.length) {
			const read = sections[code[at++]], size = number(), end = at + size;
			if (read) read();
			at = end;
		}
		return exported;
	}

	/* Returns a function that finds its arguments in the simulator's memory, 8 bytes each, and leaves
	 * its result there. */
	function onStack(fn, type) {
		const n = type.params.length, is64 = type.params.map((t) => t === wide);
		const result = type.results[0];
		return (stack) => {
			let v = own();
			const arg = (i) => i >= n ? undefined :
				is64[i] ? v.getBigInt64(stack + 8 * i, true) : v.getInt32(stack + 8 * i, true);
			const value = n > 4 ? fn(...is64.map((_, i) => arg(i))) :
				fn(arg(0), arg(1), arg(2), arg(3));
			if (result === undefined) return;
			v = own();
			if (result === wide) {
				v.setBigInt64(stack, value, true);
			} else {
				v.setInt32(stack, value, true);
				v.setInt32(stack + 4, 0, true);
			}
		};
	}

	/* Does what may fail, and keeps why it did. */
	function attempt(action, otherwise) {
		try {
			return action();
		} catch (e) {
			failed = String(e);
			return otherwise;
		}
	}

	function add(code) {
		const {exports} = new WebAssembly.Instance(new WebAssembly.Module(code), provided);
		const memory = exports.memory && new DataView(exports.memory.buffer);
		return modules.push({exports, types: typesOf(code), memory}) - 1;
	}

	const imports = {
		forget() {
			modules = [];
			functions = [];
			provided = {};
		},
		provide(from, fromSize, name, nameSize, number) {
			const of = provided[text(from, fromSize)] ??= {};
			of[text(name, nameSize)] = (a, b, c) => program.provided(number, a, b, c);
		},
		instantiate: (at, size) => attempt(() => add(bytes(at, size).slice()), -1),
		failure(at, size) {
			return new TextEncoder().encodeInto(failed, bytes(at, size)).written;
		},
		global(number, name, size) {
			const of = modules[number].exports[text(name, size)];
			return of instanceof WebAssembly.Global ? of.value : -1;
		},
		exported(number, name, size) {
			const {exports, types} = modules[number], of = text(name, size);
			return of in types ? functions.push(onStack(exports[of], types[of])) - 1 : -1;
		},
		call(number, stack) {
			try {
				functions[number](stack >>> 0);
				return 1;
			} catch (e) {
				failed = String(e);
				return 0;
			}
		},
		pages: (number) => modules[number].memory ? modules[number].memory.byteLength >>> 16 : 0,
		grow: (number, pages) => attempt(() => {
			const m = modules[number];
			m.exports.memory.grow(pages);
			m.memory = new DataView(m.exports.memory.buffer);
			return 1;
		}, 0),
		load32: (number, at) => modules[number].memory.getInt32(at >>> 0, true),
		store32: (number, at, value) => modules[number].memory.setInt32(at >>> 0, value, true),
		store16: (number, at, value) => modules[number].memory.setInt16(at >>> 0, value, true),
		store8: (number, at, value) => modules[number].memory.setInt8(at >>> 0, value),
		read(number, at, into, size) {
			bytes(into, size).set(new Uint8Array(modules[number].memory.buffer, at >>> 0, size));
		},
		write(number, at, from, size) {
			new Uint8Array(modules[number].memory.buffer, at >>> 0, size).set(bytes(from, size));
		},
	};
	return {
		imports,
		startWith(exports) {
			program = exports;
			mem = exports.mem;
			view = new DataView(mem.buffer);
		},
	};
}
