// Finds chapters that have all words of a query. What precedes is the index, const chapters.
"use strict";
{
	const query = document.getElementById("query");
	const found = document.getElementById("found");
	const most = 12;

	// How well a chapter fits: a word in a heading counts more than one in the text; 0: not at all.
	const score = (chapter, words) => {
		let sum = 0;
		for (const word of words) {
			const inTitle = chapter.title.includes(word), inPage = chapter.page.includes(word);
			if (!inTitle && !inPage && !chapter.text.includes(word)) return 0;
			sum += 1 + (inTitle ? 10 : 0) + (inPage ? 4 : 0) + (chapter.title === word ? 20 : 0);
		}
		return sum;
	};
	const lower = chapters.map((c) => ({
		c, title: c.t.toLowerCase(), page: c.p.toLowerCase(), text: c.x.toLowerCase(),
	}));
	const excerpt = (chapter, word) => {
		const at = Math.max(0, chapter.text.indexOf(word) - 50);
		return (at ? "... " : "") + chapter.c.x.slice(at, at + 150);
	};
	const item = (chapter, word) => {
		const li = document.createElement("li"), a = document.createElement("a");
		a.href = chapter.c.u;
		const b = document.createElement("b"), small = document.createElement("small");
		b.textContent = chapter.c.t === chapter.c.p ? chapter.c.t : `${chapter.c.p}: ${chapter.c.t}`;
		small.textContent = excerpt(chapter, word);
		a.append(b, small);
		li.append(a);
		return li;
	};
	const show = () => {
		const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
		found.hidden = !words.length;
		if (!words.length) return;
		const hits = lower.map((c) => [score(c, words), c]).filter(([s]) => s)
			.sort((a, b) => b[0] - a[0]).slice(0, most);
		found.replaceChildren(...hits.map(([, c]) => item(c, words[0])));
		if (!hits.length) found.textContent = "Nothing found. Try fewer words.";
	};
	query.addEventListener("input", show);
	document.addEventListener("keydown", (e) => {
		if (e.key === "/" && document.activeElement !== query) {
			e.preventDefault();
			query.focus();
		}
		if (e.key === "Escape") {
			query.value = "";
			show();
		}
		if (e.key === "Enter" && document.activeElement === query) found.querySelector("a")?.click();
	});
	found.addEventListener("click", () => { found.hidden = true; });
	// #q=words in the address searches, so that a search can be linked to.
	const asked = new URLSearchParams(location.hash.slice(1)).get("q");
	if (asked) {
		query.value = asked;
		show();
	}
}
