import { message } from "./message.js";

function show(text) {
  document.querySelector("h1").textContent = text;
}

show(message);
import.meta.hot?.accept("./message.js", (changed) => show(changed.message));
