/** Puts texts on the clipboard. */

/** Its message is for the user. */
export class ClipboardError extends Error {
  constructor() {
    super("The browser did not let this page copy. Allow it for this site, and try again.");
  }
}

/**
 * @param text a promise, if the text is loaded first: Safari refuses a copy that begins when the text has arrived.
 * @throws ClipboardError if the browser refuses, or the error of the promise.
 */
export async function copyText(text: string | Promise<string>): Promise<void> {
  const blob = Promise.resolve(text).then((loaded) => new Blob([loaded], { type: "text/plain" }));
  try {
    await navigator.clipboard.write([new ClipboardItem({ "text/plain": blob })]);
  } catch {
    await blob;
    throw new ClipboardError();
  }
}
