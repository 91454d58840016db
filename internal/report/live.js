/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the figures with plot.js: values under the pointer, zoom by dragging, double click to zoom
   out, and a legend that shows one curve alone. Without this script readers see the SVG. */
(function () {
	"use strict";

	const figures = JSON.parse(document.getElementById("live-data").textContent);
	const dark = matchMedia("(prefers-color-scheme: dark)");
	const pixelsPerPoint = 96 / 72;

	/* unpack expands [count, value] to equal values. */
	function unpack(list) {
		const values = [];
		for (const v of list) {
			if (!Array.isArray(v)) values.push(v);
			else for (let i = 0; i < v[0]; i++) values.push(v[1]);
		}
		return values;
	}

	for (const figure of figures)
		for (const [i, panel] of figure.panels.entries())
			if (panel.x || panel.same) {
				panel.x = panel.same ? figure.panels[i - 1].x : unpack(panel.x);
				for (const c of panel.curves) {
					c.y = unpack(c.y);
					if (c.low) c.low = unpack(c.low);
				}
			}

	/* The range that the figures over time of each section show, if not all: [from, to], in ms. The
	 * page's address has the last that was chosen, so that a link leads to it. */
	const ranges = new Map();
	function keepRange(section, range) {
		ranges.set(section, range);
		history.replaceState(null, "", range ? "#" + section.id + "&ms=" +
			range.map((ms) => Number(ms.toPrecision(6))) : location.pathname + location.search);
		section.dispatchEvent(new CustomEvent("range", {detail: range}));
	}
	function followAddress() {
		const [, id, from, to] = /^#(.*)&ms=([-.\de]+),([-.\de]+)$/.exec(location.hash) || [];
		const section = id ? document.getElementById(id) : document.body;
		if (!section || !(Number(from) < Number(to))) return;
		keepRange(section, [Number(from), Number(to)]);
		if (id) section.scrollIntoView();
	}

	function theme() {
		return dark.matches
			? {text: "#d5d8de", grid: "#3a3f47", line: "#6b717c", page: "#16181c"}
			: {text: "#1a1a1a", grid: "#d4d4d4", line: "#888", page: "#fff"};
	}

	/* shown lightens a colour on a dark page, so that it can be told from the background. */
	function shown(color) {
		if (!color || !dark.matches) return color;
		if (color === "#000000") return theme().text;
		const n = parseInt(color.slice(1), 16);
		const mixed = [n >> 16, n >> 8 & 255, n & 255].map((v) => Math.round(v + (255 - v) * 0.42));
		return "#" + mixed.map((v) => v.toString(16).padStart(2, "0")).join("");
	}

	function number(v) {
		return v == null ? "" : String(parseFloat(v.toPrecision(4)));
	}

	function element(name, className, parent, text) {
		const e = document.createElement(name);
		e.className = className;
		if (text) e.textContent = text;
		if (parent) parent.append(e);
		return e;
	}

	function draw(holder, figure) {
		const still = holder.querySelector(".still");
		const live = element("div", "live", null);
		const hidden = new Set();
		let plots = [];

		/* All figures over time of a section have one cursor, which the views of its network follow
		 * ("time", in ms), and which follows their slider ("moment"). */
		const timed = figure.xLabel === "Time (ms)";
		const section = holder.closest("section") || document.body;
		const tell = (what, ms) => section.dispatchEvent(new CustomEvent(what, {detail: ms}));
		let zoom = timed && ranges.get(section) || null;
		const point = (x) => {
			for (const u of plots) u.cursor(x);
		};
		if (timed) {
			for (const what of ["moment", "time"])
				section.addEventListener(what, ({detail}) => point(detail));
			section.addEventListener("left", () => point(null));
			section.addEventListener("range", ({detail}) => setZoom(detail));
		}

		const bar = element("div", "legend", live);
		const reset = element("button", "reset", null, "Reset zoom");
		for (const entry of figure.legend) {
			const button = element("button", "", bar);
			const swatch = element("span", "swatch", button);
			const marker = entry.marker && element("span", "", button, entry.marker);
			button.append(entry.name);
			button.type = "button";
			button.setAttribute("aria-pressed", "true");
			button.title = "Show only " + entry.name + ", or all again. With Ctrl or Shift: show or hide it";
			button.onclick = (e) => {
				choose(entry.name, e.ctrlKey || e.metaKey || e.shiftKey);
				build();
			};
			button.paint = () => {
				const color = shown(entry.fill || entry.line);
				swatch.hidden = Boolean(entry.unlined);
				if (marker && !entry.unlined) marker.style.color = color;
				if (figure.names && entry.hatched) {
					swatch.style.cssText = "height:9px;border:1px solid " + color + ";background:" +
						"repeating-linear-gradient(45deg," + color + " 0 1px,transparent 1px 4px)";
					return;
				}
				swatch.style.borderTop = (entry.fill ? "9px solid " : entry.dashes ? "2px dashed " :
					"3px solid ") + color;
				swatch.style.color = color;
			};
		}
		/* choose shows one entry alone, and all if it was alone; one more or less shows or hides it. */
		function choose(name, oneMoreOrLess) {
			const names = figure.legend.map((entry) => entry.name);
			const alone = !hidden.has(name) && hidden.size === names.length - 1;
			if (oneMoreOrLess) {
				if (!hidden.delete(name)) hidden.add(name);
			} else {
				hidden.clear();
				if (!alone) for (const other of names) if (other !== name) hidden.add(other);
			}
			[...bar.querySelectorAll("[aria-pressed]")].forEach((button, i) =>
				button.setAttribute("aria-pressed", String(!hidden.has(names[i]))));
		}
		reset.type = "button";
		reset.hidden = true;
		reset.onclick = () => setZoom(null);
		bar.append(reset);
		const body = element("div", "panels", live);
		body.setAttribute("role", "img");
		body.setAttribute("aria-label", figure.title);

		/* setZoom shows the same times in all panels, and in all figures over time of a section: all for
		 * null. */
		function setZoom(range) {
			const whole = [figure.xMin, figure.xMax];
			zoom = range && range[1] - range[0] < (whole[1] - whole[0]) * 0.999 ? range : null;
			reset.hidden = !zoom;
			const [min, max] = zoom || whole;
			for (const u of plots) u.setRange(min, max);
			if (timed && String(zoom) !== String(ranges.get(section) || null)) keepRange(section, zoom);
		}

		const isHidden = (thing) => hidden.has(thing.name) || hidden.has(thing.note);

		/* names is the room that the names of rows need, so that all panels start at the same x. */
		const names = Math.max(0, ...figure.panels.flatMap((p) => (p.rows || []).map((r) => r.name.length)));
		const axisWidth = Math.max(46, 8 + 6.2 * names);

		function xText(v) {
			if (figure.names) return figure.names[Math.round(v)];
			return number(figure.log ? 10 ** v : v);
		}

		/* tick is the room and the turn of the texts below the lowest panel. */
		function tick() {
			if (!figure.names) return {size: 26, rotate: 0};
			const longest = 6.4 * Math.max(...figure.names.map((name) => name.length));
			const slot = (Math.max(body.clientWidth, 200) - axisWidth - 28) / figure.names.length;
			if (longest + 6 < slot) return {size: 26, rotate: 0};
			return {size: Math.min(20 + 0.72 * longest, 130), rotate: -45};
		}

		function build() {
			plots = [];
			body.replaceChildren();
			for (const button of bar.children) if (button.paint) button.paint();
			figure.panels.forEach((panel, i) => {
				if (panel.label) element("div", "label", body, panel.label);
				const last = i === figure.panels.length - 1;
				const make = figure.names ? namesOf : panel.rows ? rowsOf : curvesOf;
				plots.push(new Panel({...options(panel, last), ...make(panel)}, body));
			});
			setZoom(zoom);
		}

		/* options are what panels of curves, of rows and of names have in common. */
		function options(panel, last) {
			const below = tick(), titleSize = figure.xLabel ? 18 : 0;
			const o = {
				x: [figure.xMin, figure.xMax], yMin: panel.yMin, yMax: panel.yMax,
				width: Math.max(body.clientWidth, 200),
				top: 6, right: 10, bottom: last ? below.size + titleSize : 8, left: axisWidth + 18,
				height: Math.round(panel.height * pixelsPerPoint) + (last ? below.size + titleSize : 8) + 6,
				colors: theme(), last, xLabel: figure.xLabel, yLabel: panel.yLabel,
				turned: below.rotate !== 0, xGrid: !figure.names, yGrid: true, xText,
				xTicks: (u) => figure.names ? figure.names.map((name, i) => i)
					.filter((i) => i >= u.min && i <= u.max)
					: figure.log ? powers(u.min, u.max) : roundTicks(u.min, u.max, u.width / 60),
				yTicks: (u) => panel.log ? powers(panel.yMin, panel.yMax)
					: roundTicks(panel.yMin, panel.yMax, u.height / 28),
				yText: (v) => number(panel.log ? 10 ** v : v),
				dots: () => [],
				moved: (x) => {
					if (!timed) point(x);
					else if (x == null) tell("left");
					else tell("time", x);
				},
				zoomed: setZoom,
			};
			return o;
		}

		/* powers returns the places of round numbers on a logarithmic axis. */
		function powers(min, max) {
			const at = [];
			for (let p = Math.floor(min); p <= max; p++)
				for (const s of max - min > 3 ? [1] : max - min > 0.5 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 7])
					if (p + Math.log10(s) >= min && p + Math.log10(s) <= max) at.push(p + Math.log10(s));
			return at;
		}

		function unitOf(panel) {
			const found = /\(([^)]*)\)/.exec(panel.yLabel || "");
			return found ? " " + found[1] : "";
		}

		function timeText(x) {
			const found = /\(([^)]*)\)/.exec(figure.xLabel || "");
			return xText(x) + (found ? " " + found[1] : "");
		}

		function curvesOf(panel) {
			const visible = panel.curves.filter((c) => !isHidden(c));
			/* a curve of a stack stands on those before it */
			const heights = new Map(), feet = new Map();
			let below = null;
			for (const c of visible) {
				feet.set(c, panel.stacked ? below : c.low || null);
				below = panel.stacked && below ? c.y.map((v, k) => v + below[k]) : c.y;
				heights.set(c, below);
			}
			return {
				paint: (u) => {
					for (const c of visible) {
						const fill = c.low ? shown(c.line) + "44" : c.fill ? shown(c.fill) :
							panel.stacked ? shown(c.line) + "55" : null;
						if (fill) u.area(panel.x, heights.get(c), feet.get(c), fill);
					}
					for (const c of visible)
						if (!c.low && c.line) u.curve(panel.x, heights.get(c), {stroke: shown(c.line),
							"stroke-dasharray": c.dashes && c.dashes.map((d) => d * pixelsPerPoint)});
					/* rings of a stack stand on the curves below them */
					for (const m of panel.marks || [])
						if (panel.stacked ? visible.length === panel.curves.length : !isHidden(m)) ring(u, m);
					for (const [from, to] of panel.spans || []) arrow(u, from, to);
				},
				values: (u, x) => {
					const i = nearest(panel.x, x);
					return [["", timeText(panel.x[i])]].concat(visible.map((c) =>
						[shown(c.fill && !c.dashes ? "" : c.line), c.name + (c.note ? " (" + c.note + ")" : "") + ": " +
							(c.low ? number(c.low[i]) + " to " : "") + number(c.y[i]) + unitOf(panel)]).reverse());
				},
				dots: (u, x) => {
					const i = nearest(panel.x, x);
					return visible.filter((c) => !c.low && c.line && c.y[i] != null)
						.map((c) => [panel.x[i], heights.get(c)[i], shown(c.line)]);
				},
			};
		}

		function ring(u, marks) {
			for (const [x, y] of marks.at)
				plotElement("circle", {cx: u.px(x), cy: u.py(y), r: 3.2, fill: "none", stroke: shown(marks.line),
					"stroke-width": 1.5}, u.ink);
		}

		function arrow(u, from, to) {
			if (to <= from) return;
			const a = u.px(from), b = u.px(to), y = 0.26 * u.height, color = theme().text;
			plotElement("path", {d: `M${a},${y}L${b},${y}`, stroke: color}, u.ink);
			for (const [x, side] of [[a, 7], [b, -7]])
				plotElement("path", {d: `M${x},${y}L${x + side},${y - 3.5}L${x + side},${y + 3.5}Z`, fill: color}, u.ink);
			for (const x of [a, b])
				plotElement("path", {d: `M${x},0L${x},${u.height}`, stroke: color, "stroke-dasharray": "3 3"}, u.ink);
		}

		function rowsOf(panel) {
			const rows = panel.rows, n = rows.length;
			const rowAt = new Map(rows.map((row, i) => [panel.yMin + n - i - 0.5, row]));
			return {
				yLabel: "", yGrid: false, fontSize: 10,
				yTicks: () => [...rowAt.keys()], yText: (y) => rowAt.get(y).name,
				values: (u, x) => {
					const lines = [["", timeText(x)]];
					for (const row of rows) {
						const box = row.boxes.find((b) => b[0] <= x && x < b[1]);
						if (box && !hidden.has(box[4]))
							lines.push([shown(box[3]), row.name + ": " + box[4] +
								(box[2] < 1 ? " " + Math.round(box[2] * 100) + "%" : "")]);
					}
					return lines.length > 1 ? lines : [];
				},
				paint: (u) => {
					for (const [y, row] of rowAt) {
						const top = u.py(y + 0.4), height = u.py(y - 0.4) - top;
						for (const [from, to, share, fill, name] of row.boxes) {
							if (hidden.has(name) || to < u.min || from > u.max) continue;
							const x = u.px(from);
							plotElement("rect", {x, y: top, width: Math.max(u.px(to) - x, 0.5), height,
								fill: shown(fill), "fill-opacity": 0.16 + 0.84 * share}, u.ink);
						}
					}
				},
			};
		}

		/* namesOf draws what stands over names: bars, and points with lines between them. */
		function namesOf(panel) {
			const value = (y) => number(panel.log ? 10 ** y : y) + unitOf(panel);
			const visible = panel.over.filter((o) => !isHidden(o));
			return {
				values: (u, at) => {
					const name = Math.round(at), lines = [["", figure.names[name]]];
					const here = (x) => Math.round(x) === name;
					for (const s of visible) {
						const add = (text) => lines.push([shown(s.hatched ? s.line : s.fill || s.line),
							(s.name ? s.name + ": " : "") + text]);
						for (const [from, to, foot, y, text] of s.bars || [])
							if (here((from + to) / 2) && (text || y !== foot)) add(text || value(y - foot));
						for (const [x, y] of s.points || []) {
							if (!here(x)) continue;
							const within = (s.intervals || []).find((i) => i[0] === x);
							add(value(y) + (within ? ", " + value(within[1]) + " to " + value(within[2]) : ""));
						}
						const seeds = (s.dots || []).filter((d) => here(d[0])).map((d) => d[1]);
						if (seeds.length)
							add(seeds.length + " from " + value(Math.min(...seeds)) + " to " + value(Math.max(...seeds)));
						if (!s.points)
							for (const i of s.intervals || []) if (here(i[0])) add(value(i[1]) + " to " + value(i[2]));
						for (const x of s.without || []) if (here(x)) add("not reached or not measured");
					}
					return lines.length > 1 ? lines : [];
				},
				paint: (u) => {
					/* single seeds stand on bars, and behind the means of curves */
					const behind = panel.over.some((s) => s.points) ? visible.filter((s) => s.dots) : [];
					for (const s of behind) over(u, s);
					for (const s of visible) if (!behind.includes(s)) over(u, s);
				},
			};
		}

		/* over draws one entry of the legend over names. */
		function over(u, s) {
			const {px, py} = {px: (x) => u.px(x), py: (y) => u.py(y)};
			const text = (x, y, said, more) => plotElement("text", {x, y, "font-size": 10, fill: theme().text,
				"text-anchor": "middle", ...more}, u.ink, said);
			const upright = (s.bars || []).some((b) => b[4] && 5.2 * b[4].length > px(b[1]) - px(b[0]) + 2);
			for (const [from, to, foot, y, said, above] of s.bars || []) {
				const left = px(from), width = px(to) - left, bottom = py(foot), top = py(y == null ? foot : y);
				const bar = {x: left, y: top, width, height: Math.max(bottom - top, 0), "stroke-width": 0.7};
				if (s.hatched) {
					hatch(u, bar, shown(s.line));
					plotElement("rect", {...bar, fill: "none", stroke: shown(s.line)}, u.ink);
				} else if (s.fill) plotElement("rect", {...bar, fill: shown(s.fill), stroke: theme().line}, u.ink);
				if (!said) continue;
				const x = left + width / 2, at = (above == null ? top : py(above)) - 4;
				if (upright || y == null)
					text(x + 3.5, at, said, {"text-anchor": "start", transform: `rotate(-90,${x + 3.5},${at})`});
				else text(x, at, said);
			}
			const ink = {stroke: shown(s.line), fill: "none", "stroke-width": 1.4};
			let last = null;
			const d = (s.points || []).map(([x, y]) => {
				const move = last == null || x - last > 1.5 ? "M" : "L";
				last = x;
				return move + px(x) + "," + py(y);
			}).join("");
			plotElement("path", {...ink, d, "stroke-dasharray": s.dashes && s.dashes.map((l) => l * pixelsPerPoint)}, u.ink);
			const bars = (s.intervals || []).map(([x, low, high]) =>
				`M${px(x)},${py(low)}V${py(high)}M${px(x) - 3},${py(low)}h6M${px(x) - 3},${py(high)}h6`).join("");
			/* on bars, intervals and single seeds have an edge: a bar may be as light as they are */
			const onBars = !s.points && !s.bars, {text: strong, page} = theme();
			if (onBars) plotElement("path", {...ink, d: bars, stroke: page, "stroke-width": 3.4}, u.ink);
			plotElement("path", {...ink, d: bars, stroke: onBars ? strong : ink.stroke}, u.ink);
			for (const [x, y] of s.dots || [])
				plotElement("circle", {cx: px(x), cy: py(y), r: 2.4, fill: page, stroke: strong}, u.ink);
			for (const [x, y] of s.points || [])
				if (s.marker) text(px(x), py(y) + 3.5, s.marker, {fill: shown(s.line)});
			for (const x of s.without || []) text(px(x), 11, "×", {fill: shown(s.line)});
		}

		/* hatch fills a box with slanted lines. */
		function hatch(u, {x, y, width, height}, color) {
			const box = plotElement("svg", {x, y, width: Math.max(width, 0), height}, u.ink);
			let d = "";
			for (let at = -height; at < width; at += 5) d += `M${at},${height}l${height},${-height}`;
			plotElement("path", {d, stroke: color, "stroke-width": 0.7}, box);
		}

		still.hidden = true;
		still.after(live);
		build();
		dark.addEventListener("change", build);
		let width = body.clientWidth;
		new ResizeObserver(() => {
			if (body.clientWidth === width) return;
			width = body.clientWidth;
			if (figure.names) build(); /* the names may have to turn */
			for (const u of plots) u.resize(Math.max(width, 200));
		}).observe(live);
	}

	/* save adds links to files that the script writes: the figure's SVG and, if it has its values,
	   these as CSV. */
	function save(holder) {
		const file = holder.dataset.file, figure = figures[holder.dataset.live - 1];
		let list = holder.querySelector(".save");
		if (!file) return;
		if (!list) list = element("p", "save", holder.querySelector(".body"), "Save as");
		function link(format, type, write, title) {
			const a = element("a", "", null, format);
			a.href = "#";
			a.title = title || "";
			a.onclick = () => {
				a.download = file + "." + format;
				a.href = URL.createObjectURL(new Blob([write()], {type}));
			};
			list.append(" ", a);
		}
		if (figure && !figure.names) /* the page has the others' values as they are */
			link("csv", "text/csv", () => csv(figure), figure.thinned
				? "The lowest and highest values of each column. For all values: pcn report --figures" : "");
		link("svg", "image/svg+xml", () => {
			const svg = holder.querySelector(".still svg").cloneNode(true);
			svg.style.fontSize = "8.5px";
			svg.style.fontFamily = "Liberation Sans, Arimo, Arial, Helvetica, sans-serif";
			return new XMLSerializer().serializeToString(svg);
		});
	}

	/* csv writes the values of a figure as `pcn report --figures` does. */
	function csv(figure) {
		const lines = [["Panel", "Curve", figure.xLabel, "Value", "Unit"]];
		for (const p of figure.panels) {
			const [, quantity, unit] = /^(.*?)(?: \((.*)\))?$/.exec(p.yLabel || "");
			const panel = ((p.run || "") + " " + quantity).trim();
			for (const c of p.curves || [])
				for (const y of c.low ? [c.low, c.y] : [c.y])
					p.x.forEach((x, i) => lines.push([panel, c.note ? c.name + ", " + c.note : c.name,
						figure.log ? 10 ** x : x, y[i], unit || ""]));
			for (const m of p.marks || [])
				for (const [x, y] of m.at) lines.push([panel, (m.name + ", paper").replace(/^, /, ""), x, y, unit || ""]);
			for (const r of p.rows || [])
				for (const [from, to, share, , name] of r.boxes)
					lines.push([panel, r.name + ", " + (name || "share"), from, share, ""],
						[panel, r.name + ", " + (name || "share"), to, 0, ""]);
		}
		return lines.map((line) => line.map((cell) =>
			/[",\n]/.test(cell) ? '"' + cell.replace(/"/g, '""') + '"' : cell).join(",")).join("\n") + "\n";
	}

	/* Figures are drawn when they come near to the screen: a page may have dozens. */
	const near = new IntersectionObserver((entries) => {
		for (const e of entries) {
			if (!e.isIntersecting) continue;
			near.unobserve(e.target);
			draw(e.target, figures[e.target.dataset.live - 1]);
		}
	}, {rootMargin: "600px"});
	followAddress();
	addEventListener("hashchange", followAddress);
	for (const holder of document.querySelectorAll("figure[data-live]")) near.observe(holder);
	for (const holder of document.querySelectorAll("figure[data-file]")) save(holder);
})();
