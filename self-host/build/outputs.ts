/** Writes files of a build, so that a server which starts at the same time never reads a partial one. */
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { basename } from "node:path";

interface OutputFile {
  path: string;
  contents: Uint8Array;
}

/** Makes the directory contain exactly these files, apart from its folders. */
export async function writeOutputs(dir: string, files: OutputFile[]): Promise<void> {
  await mkdir(dir, { recursive: true });
  for (const file of files) await writeOutput(file);
  const wanted = new Set(files.map((file) => basename(file.path)));
  for (const entry of await readdir(dir, { withFileTypes: true })) {
    const isUnwanted = entry.isFile() && !wanted.has(entry.name) && !entry.name.endsWith(".new");
    if (isUnwanted) await rm(`${dir}/${entry.name}`, { force: true });
  }
}

/** An unchanged file is not touched, and a changed one is replaced atomically. */
export async function writeOutput({ path, contents }: OutputFile): Promise<void> {
  const current = await readFile(path).catch(() => undefined);
  if (current?.equals(contents)) return;
  const fresh = `${path}.${process.pid}.new`;
  await writeFile(fresh, contents);
  await rename(fresh, path);
}
