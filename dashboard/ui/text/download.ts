/** Files that the page itself has made. */

/** Saves a text as a file. It is sent nowhere. */
export function downloadText(fileName: string, text: string): void {
  downloadFile(fileName, text);
}

/** Saves bytes or a text as a file. It is sent nowhere. */
export function downloadFile(fileName: string, content: BlobPart): void {
  const url = URL.createObjectURL(new Blob([content], { type: "application/octet-stream" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = fileName;
  link.click();
  URL.revokeObjectURL(url);
}
