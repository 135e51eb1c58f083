// Elements from data. Everything a stranger chose becomes a text node and nothing else: no markup is ever parsed here.

/** Element with a class and children; strings become text. */
export function make(tag, className, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** SVG element with attributes; text last. */
export function draw(tag, attributes, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

/** Set text only where it changed, so that selections and screen readers stay undisturbed. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Keep one child per item, made once and updated after; order follows the items. A focused child keeps its focus. */
export function reconcile(parent, items, keyOf, create, update) {
  const kept = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  let at = parent.firstElementChild;
  for (const item of items) {
    const key = keyOf(item);
    let child = kept.get(key);
    if (child) kept.delete(key);
    else {
      child = create(item);
      child.dataset.key = key;
    }
    update(child, item);
    if (child === at) at = at.nextElementSibling;
    else parent.insertBefore(child, at);
  }
  for (const gone of kept.values()) gone.remove();
}

const UNSEEN = /[\u0000-\u001f\u007f-\u00a0\u00ad\u061c\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff\ufff9-\uffff]/g;

/** An id as text that can be seen whole: controls and marks of direction spelled out, at most `most` characters. */
export function visible(text, most = 120) {
  if (text === "") return "(empty)";
  const shown = text.replace(UNSEEN, (one) => `\\u{${one.charCodeAt(0).toString(16)}}`);
  return shown.length > most ? `${shown.slice(0, most)}…` : shown;
}

/** An id isolated from the direction of the text around it, whole in its tooltip. */
export function id(text, className, most) {
  const element = make("bdi", className, visible(text, most));
  element.title = visible(text, 2000);
  return element;
}
