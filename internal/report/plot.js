/* SPDX-License-Identifier: Apache-2.0 */
/* One panel of a figure: axes, a cursor with values, zoom by dragging, and what its owner paints.
   live.js has the owners. It draws SVG, as pcn does where there is no script. */
"use strict";

const plotFont = "\"Liberation Sans\", Arimo, Arial, Helvetica, sans-serif";

/* plotElement adds an SVG element to another. */
function plotElement(name, attributes, parent, text) {
	const e = document.createElementNS(document.querySelector("svg").namespaceURI, name);
	for (const [key, value] of Object.entries(attributes))
		if (value != null) e.setAttribute(key, value);
	if (text != null) e.textContent = text;
	if (parent) parent.append(e);
	return e;
}

/* roundTicks returns round numbers from min to max, at most so many. */
function roundTicks(min, max, count) {
	const least = (max - min) / Math.max(count, 1);
	if (!(least > 0)) return [min];
	const power = 10 ** Math.floor(Math.log10(least));
	const step = power * [1, 2, 5, 10].find((s) => s * power >= least * 0.999);
	const at = [];
	for (let i = Math.ceil(min / step - 1e-9); i <= Math.floor(max / step + 1e-9); i++) at.push(i * step);
	return at;
}

class Panel {
	/* o has the size, the axes, colors, and functions of the owner:
	   paint(panel)          draws into panel.ink
	   values(panel, x)      returns the lines of the tip at x, as [color, text]
	   dots(panel, x)        returns what the cursor points at, as [x, y, color]
	   moved(x)              the pointer is at x; null: it left
	   zoomed(range)         a range was chosen by dragging; null: all */
	constructor(o, parent) {
		this.o = o;
		[this.min, this.max] = o.x;
		this.holder = document.createElement("div");
		this.holder.className = "panel";
		this.svg = plotElement("svg", {class: "plot", "aria-hidden": true}, this.holder);
		this.over = document.createElement("div");
		this.over.className = "over";
		this.tip = document.createElement("div");
		this.tip.className = "tip";
		this.tip.hidden = true;
		this.chosen = document.createElement("div");
		this.chosen.className = "chosen";
		this.chosen.hidden = true;
		this.over.append(this.chosen, this.tip);
		this.holder.append(this.over);
		parent.append(this.holder);
		this.listen();
		this.resize(o.width);
	}

	listen() {
		const {over, chosen, o} = this;
		let from = null;
		const left = (e) => Math.min(Math.max(e.clientX - over.getBoundingClientRect().left, 0), this.width);
		over.onpointerdown = (e) => {
			if (e.button !== 0) return;
			from = left(e);
			if (e.pointerType === "mouse") over.setPointerCapture(e.pointerId);
		};
		over.onpointermove = (e) => {
			o.moved(this.at(left(e)));
			if (from == null) return;
			const to = left(e);
			chosen.hidden = Math.abs(to - from) < 4;
			chosen.style.left = Math.min(from, to) + "px";
			chosen.style.width = Math.abs(to - from) + "px";
		};
		over.onpointerup = (e) => {
			const to = left(e), was = from;
			over.onpointercancel();
			if (was != null && Math.abs(to - was) >= 4)
				o.zoomed([this.at(Math.min(was, to)), this.at(Math.max(was, to))]);
		};
		over.onpointercancel = () => {
			from = null;
			chosen.hidden = true;
		};
		over.onpointerleave = () => o.moved(null);
		over.ondblclick = () => o.zoomed(null);
	}

	px(x) { return (x - this.min) / (this.max - this.min) * this.width; }
	py(y) { return (1 - (y - this.o.yMin) / (this.o.yMax - this.o.yMin)) * this.height; }
	at(left) { return this.min + left / this.width * (this.max - this.min); }

	resize(width) {
		const {o} = this;
		this.width = Math.max(width - o.left - o.right, 20);
		this.height = o.height - o.top - o.bottom;
		this.svg.setAttribute("width", width);
		this.svg.setAttribute("height", o.height);
		Object.assign(this.over.style, {left: o.left + "px", top: o.top + "px",
			width: this.width + "px", height: this.height + "px"});
		this.draw();
	}

	setRange(min, max) {
		if (this.min === min && this.max === max) return;
		[this.min, this.max] = [min, max];
		this.draw();
	}

	draw() {
		const {o, svg, width, height} = this;
		svg.replaceChildren();
		const axes = plotElement("g", {transform: `translate(${o.left},${o.top})`, fill: o.colors.text,
			"font-size": o.fontSize || 12, "font-family": plotFont}, svg);
		const line = (x1, y1, x2, y2) =>
			plotElement("line", {x1, y1, x2, y2, stroke: o.colors.grid, "stroke-width": 1}, axes);
		for (const y of o.yTicks(this)) {
			const at = this.py(y);
			if (at < -0.5 || at > height + 0.5) continue;
			if (o.yGrid) line(0, at, width, at);
			plotElement("text", {x: -6, y: at + 4, "text-anchor": "end"}, axes, o.yText(y));
		}
		for (const x of o.xTicks(this)) {
			const at = this.px(x);
			if (o.xGrid) line(at, 0, at, height);
			if (!o.last) continue;
			const turned = o.turned && `rotate(-45,${at},${height + 12})`;
			plotElement("text", {x: at, y: height + (turned ? 12 : 16), transform: turned || null,
				"text-anchor": turned ? "end" : "middle", "font-size": 12}, axes, o.xText(x));
		}
		if (o.yLabel) {
			const x = 12 - o.left, y = height / 2;
			plotElement("text", {x, y, transform: `rotate(-90,${x},${y})`, "text-anchor": "middle"}, axes, o.yLabel);
		}
		if (o.last && o.xLabel)
			plotElement("text", {x: width / 2, y: height + o.bottom - 4, "text-anchor": "middle", "font-size": 12}, axes, o.xLabel);
		/* what is outside of this is not seen */
		this.ink = plotElement("svg", {x: o.left, y: o.top, width, height, "font-family": plotFont}, svg);
		o.paint(this);
		this.mark = plotElement("g", {}, this.ink);
	}

	/* cursor shows a position and the values there; null: none. */
	cursor(x) {
		const {o, mark, tip, height} = this;
		mark.replaceChildren();
		const lines = x == null || x < this.min || x > this.max ? [] : o.values(this, x);
		tip.hidden = !lines.length;
		tip.replaceChildren(...lines.map(([color, text]) => {
			const line = document.createElement("div");
			line.textContent = text;
			if (color) line.style.color = color;
			return line;
		}));
		if (x == null) return;
		const at = this.px(x);
		tip.className = at > this.width / 2 ? "tip left" : "tip";
		plotElement("line", {x1: at, y1: 0, x2: at, y2: height, stroke: o.colors.line, "stroke-dasharray": "3 3"}, mark);
		for (const [dx, dy, color] of o.dots(this, x))
			plotElement("circle", {cx: this.px(dx), cy: this.py(dy), r: 3, fill: color}, mark);
	}

	/* seen returns the indices of the values that the panel shows, and one more at each end. */
	seen(xs) {
		const from = Math.max(indexFrom(xs, this.min) - 1, 0);
		return [from, Math.min(indexFrom(xs, this.max) + 1, xs.length)];
	}

	/* points returns the places of a curve in pieces, as null is a gap. Of the values in one column of
	   pixels it keeps the first, lowest, highest and last. */
	pieces(xs, ys) {
		const [from, to] = this.seen(xs), pieces = [];
		const thin = to - from > 4 * this.width;
		let piece = [], column = null;
		const keep = (i) => piece.push([this.px(xs[i]), this.py(ys[i])]);
		const end = () => {
			if (!column) return;
			for (const i of [...new Set([column.first, column.low, column.high, column.last])].sort((a, b) => a - b))
				keep(i);
			column = null;
		};
		for (let i = from; i < to; i++) {
			if (ys[i] == null) {
				end();
				if (piece.length) pieces.push(piece);
				piece = [];
				continue;
			}
			if (!thin) {
				keep(i);
				continue;
			}
			const place = Math.floor(this.px(xs[i]));
			if (!column || column.place !== place) {
				end();
				column = {place, first: i, low: i, high: i, last: i};
			}
			if (ys[i] < ys[column.low]) column.low = i;
			if (ys[i] > ys[column.high]) column.high = i;
			column.last = i;
		}
		end();
		if (piece.length) pieces.push(piece);
		return pieces;
	}

	curve(xs, ys, attributes) {
		const d = this.pieces(xs, ys).map((piece) => "M" + piece.map(placeText).join("L")).join("");
		plotElement("path", {d, fill: "none", "stroke-width": 1.6, "stroke-linejoin": "round", ...attributes}, this.ink);
	}

	/* area fills what is between two curves; without a lower one, from the foot. */
	area(xs, high, low, fill) {
		const below = low ? this.pieces(xs, low) : [], foot = this.py(Math.max(0, this.o.yMin));
		const d = this.pieces(xs, high).map((piece, i) => {
			const back = low ? [...(below[i] || [])].reverse() :
				[[piece.at(-1)[0], foot], [piece[0][0], foot]];
			return "M" + piece.concat(back).map(placeText).join("L") + "Z";
		}).join("");
		plotElement("path", {d, fill}, this.ink);
	}
}

function placeText([x, y]) {
	return Math.round(x * 10) / 10 + "," + Math.round(y * 10) / 10;
}

/* indexFrom returns the index of the first value that is not below x, of values in order. */
function indexFrom(values, x) {
	let low = 0, high = values.length;
	while (low < high) {
		const middle = (low + high) >> 1;
		if (values[middle] < x) low = middle + 1;
		else high = middle;
	}
	return low;
}

/* nearest returns the index of the value that is closest to x, of values in order. */
function nearest(values, x) {
	const i = Math.min(indexFrom(values, x), values.length - 1);
	return i > 0 && x - values[i - 1] < values[i] - x ? i - 1 : i;
}
