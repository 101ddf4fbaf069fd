// Elements of the page. Text is always set as text: nothing of a model becomes markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(element.style, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== undefined && child !== null && child !== false) element.append(child);
  }
  return element;
}

/** An element: el("p", {class: "soft"}, "text", otherElement). */
function el(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** An element of a drawing. */
function draw(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** A section of the page with its heading and an introduction. */
function section(id, heading, introduction, ...children) {
  return el("section", {id, "aria-labelledby": `${id}-heading`},
    el("h2", {id: `${id}-heading`}, heading),
    introduction && el("p", {class: "soft"}, introduction), ...children);
}

/** Buttons of which one is pressed; `choose` gets its value. */
function choices(label, options, chosen, choose) {
  const group = el("span", {role: "group", "aria-label": label, class: "bar no-print", style: {margin: 0}});
  for (const [value, text] of options) {
    group.append(el("button", {
      type: "button", "aria-pressed": String(value === chosen),
      onclick: (event) => {
        for (const other of group.children) other.setAttribute("aria-pressed", String(other === event.currentTarget));
        choose(value);
      },
    }, text));
  }
  return group;
}

/** Say something for a moment, also to a screen reader. */
function say(text) {
  const said = document.getElementById("said");
  said.textContent = text;
  said.classList.add("shown");
  clearTimeout(say.timer);
  say.timer = setTimeout(() => said.classList.remove("shown"), 1800);
}
