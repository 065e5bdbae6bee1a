/** Files that the page itself has made. */

/** Saves a text or bytes as a file. It is sent nowhere. */
export function downloadFile(fileName: string, content: BlobPart): void {
  const url = URL.createObjectURL(new Blob([content], { type: "application/octet-stream" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = fileName;
  link.click();
  // The browser has started to read it by the next task.
  setTimeout(() => URL.revokeObjectURL(url));
}
