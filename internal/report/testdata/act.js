/* SPDX-License-Identifier: Apache-2.0 */
/* Goes on with a report whose figure of throughput was zoomed, as a reader does, and returns what
   came of it. */
(async () => {
	const figure = document.querySelector("figure[data-file$=-throughput]");
	const out = {tip: figure.querySelector(".tip").textContent};
	const view = document.querySelector("figure.network"), range = view.querySelector("input");
	out.followed = view.querySelector("output").textContent;
	const reset = figure.querySelector(".reset"), button = figure.querySelector(".legend button");
	const resets = () => [...document.querySelectorAll("figure[data-live]")]
		.filter((f) => f.querySelector(".reset") && !f.querySelector(".reset").hidden).length;
	out.zoomed = resets();
	out.address = location.hash;
	reset.click();
	out.zoomedOut = resets();
	out.addressAfter = location.hash;
	location.hash = out.address;
	await new Promise((done) => addEventListener("hashchange", done, {once: true}));
	out.followedLink = resets();
	reset.click();
	const pressed = () => [...figure.querySelectorAll(".legend [aria-pressed]")]
		.map((b) => b.getAttribute("aria-pressed")).join();
	out.pressed = [];
	for (const ctrlKey of [false, false, true, true]) {
		button.dispatchEvent(new MouseEvent("click", {ctrlKey}));
		out.pressed.push(pressed());
	}
	button.click();
	await new Promise((done) => setTimeout(done, 50)); /* curves are drawn anew */
	const states = () => view.querySelectorAll("svg.net g:last-child path").length;
	const move = (frame) => {
		range.value = frame;
		range.dispatchEvent(new Event("input"));
	};
	out.before = 0;
	for (let frame = 0; frame < range.max; frame++) {
		move(frame);
		out.before = Math.max(out.before, states());
	}
	move(range.max / 2);
	out.tipHalf = figure.querySelector(".tip").textContent;
	out.when = view.querySelector("output").textContent;
	move(range.max);
	out.later = view.querySelector("output").textContent;
	out.after = states();
	out.shown = view.querySelectorAll("svg.net").length;
	const link = [...figure.querySelectorAll(".save a")].find((a) => a.textContent === "csv");
	link.addEventListener("click", (e) => e.preventDefault());
	link.click();
	out.csv = (await (await fetch(link.href)).text()).split("\n")[0];
	return out;
})()
