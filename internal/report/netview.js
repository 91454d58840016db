/* SPDX-License-Identifier: Apache-2.0 */
/* Turns a strip of moments of the network into one picture for each run, with a slider. The section's
 * figures over time have the same cursor (live.js): "time" is where it is, in ms, and "moment" moves
 * it. */
(function () {
	"use strict";

	function unpack(text) {
		const states = [];
		for (const part of text.split(",")) {
			const [state, count] = part.split("x");
			for (let i = 0; i < count; i++) states.push(Number(state));
		}
		return states;
	}

	for (const figure of document.querySelectorAll("figure.network:not(.ports)")) {
		const section = figure.closest("section") || document.body;
		const data = JSON.parse(figure.querySelector("script").textContent);
		const runs = data.runs.map((ports) => ports.map(unpack));
		const strips = [...figure.querySelectorAll(".strip")];
		const pictures = strips.map((strip) => {
			for (const moment of [...strip.children].slice(1)) moment.remove();
			strip.classList.add("one");
			strip.querySelector(".when").remove();
			return strip.querySelector("svg.net");
		});
		const bar = figure.querySelector(".slider");
		const [button, range, output] = bar.children;
		range.max = data.frames - 1;

		function show() {
			const frame = Number(range.value);
			const at = "t = " + parseFloat((data.start + frame * data.step).toPrecision(4)) + " ms";
			output.textContent = at;
			pictures.forEach((svg, i) => {
				const group = svg.lastElementChild;
				group.replaceChildren();
				data.looks.forEach((look, k) => {
					const d = data.lines.filter((_, p) => runs[i][p][frame] === k + 1)
						.map((l) => "M" + l[0] + "," + l[1] + "L" + l[2] + "," + l[3]).join("");
					if (!d) return;
					const path = document.createElementNS(svg.namespaceURI, "path");
					path.setAttribute("d", d);
					path.setAttribute("stroke", look.color);
					path.setAttribute("stroke-width", look.width);
					path.setAttribute("stroke-dasharray", look.dash);
					group.append(path);
				});
				svg.setAttribute("aria-label", "Network at " + at);
			});
		}

		/* Start where most ports have a state. */
		let most = -1;
		for (let frame = 0; frame < data.frames; frame++) {
			const n = Math.max(...runs.map((ports) => ports.filter((p) => p[frame] > 0).length));
			if (n > most) {
				most = n;
				range.value = frame;
			}
		}
		let timer = 0;
		button.onclick = () => {
			if (timer) {
				clearInterval(timer);
				timer = 0;
				button.textContent = "Play";
				return;
			}
			if (Number(range.value) >= data.frames - 1) range.value = 0;
			button.textContent = "Stop";
			timer = setInterval(() => {
				range.value = Number(range.value) + 1;
				show();
				tell();
				if (Number(range.value) >= data.frames - 1) button.click();
			}, 60);
		};
		function tell() {
			const ms = data.start + (Number(range.value) + 0.5) * data.step;
			section.dispatchEvent(new CustomEvent("moment", {detail: ms}));
		}
		range.oninput = () => {
			show();
			tell();
		};
		section.addEventListener("time", ({detail}) => {
			if (timer) return;
			range.value = Math.floor((detail - data.start) / data.step);
			show();
		});
		bar.hidden = false;
		show();
	}

	/* Maps of ports show the cursor, and set it, and name the port under the pointer. */
	for (const svg of document.querySelectorAll("svg.portmap")) {
		const section = svg.closest("section") || document.body;
		const [start, step, frames, left] = ["start", "step", "frames", "left"]
			.map((name) => Number(svg.dataset[name]));
		const {width, height} = svg.viewBox.baseVal, bottom = Number(svg.dataset.bottom);
		const names = svg.closest("figure").dataset.names.split(",");
		const told = svg.closest(".run").querySelector("output");
		const now = document.createElementNS(svg.namespaceURI, "path");
		now.setAttribute("class", "now");
		svg.append(now);
		const follow = ({detail}) => {
			const x = left + (detail - start) / (step * frames) * (width - left);
			now.setAttribute("d", x >= left && x <= width ? "M" + x + ",0V" + height : "");
		};
		section.addEventListener("time", follow);
		section.addEventListener("moment", follow);
		svg.onmouseleave = () => { told.textContent = ""; };
		svg.onmousemove = (e) => {
			const {left: edge, top, width: wide, height: high} = svg.getBoundingClientRect();
			const x = (e.clientX - edge) / wide * width;
			const row = Math.floor((e.clientY - top) / high * height / bottom * names.length);
			told.textContent = names[row] || "";
			if (x < left) return;
			section.dispatchEvent(new CustomEvent("moment",
				{detail: start + (x - left) / (width - left) * step * frames}));
		};
	}
})();
