/** The directory that holds everything of a self-hosted server, and the note in it of who uses it now. */
import { link, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { getErrorMessage, StartError } from "./errors.ts";
import { createPrivateDirectory, writePrivateFile } from "./files.ts";
import { getCommandLine, stopStaleProcess } from "./processes/processes.ts";

export interface DataDir {
  path: string;
  /** Configuration and sockets of the running server. */
  runDir: string;
  objectsDir: string;
  mailDir: string;
  /** A later start ends this process, if this server can't. */
  recordWorkerd(pid: number): Promise<void>;
  release(): Promise<void>;
}

const Note = z.object({ pid: z.int(), script: z.string(), workerd: z.int().optional() });
type Note = z.output<typeof Note>;

/** @throws StartFailure when it can't be used, or is in use. */
export async function openDataDir(path: string): Promise<DataDir> {
  const runDir = join(path, "run");
  const objectsDir = join(path, "objects");
  try {
    for (const dir of [path, runDir, objectsDir]) await createPrivateDirectory(dir);
    const notePath = join(runDir, "server.json");
    const note: Note = { pid: process.pid, script: process.argv[1] ?? "" };
    await acquireLock(notePath, note);
    return {
      path,
      runDir,
      objectsDir,
      mailDir: join(path, "mail"),
      recordWorkerd: (workerd) => writePrivateFile(notePath, JSON.stringify({ ...note, workerd })),
      release: () => rm(notePath, { force: true }),
    };
  } catch (error) {
    if (error instanceof StartError) throw error;
    throw new StartError(`DATA_DIR: ${path} can't be used: ${getErrorMessage(error)}`);
  }
}

/** A link to a name that exists fails, so of two servers one gets it. */
async function acquireLock(notePath: string, note: Note): Promise<void> {
  const own = `${notePath}.${process.pid}`;
  await writePrivateFile(own, JSON.stringify(note));
  try {
    await link(own, notePath);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
    await removeStaleLock(notePath);
    await link(own, notePath);
  } finally {
    await rm(own, { force: true });
  }
}

/** What a server leaves behind that was ended with `kill -9`: its note, and processes that go on. */
async function removeStaleLock(notePath: string): Promise<void> {
  const text = await readFile(notePath, "utf8");
  const left = parseLock(text);
  if (left && left.pid !== process.pid && getCommandLine(left.pid)?.includes(left.script)) {
    throw new StartError(`DATA_DIR: is in use by the server with process id ${left.pid}`);
  }
  if (left?.workerd !== undefined) await stopStaleProcess(left.workerd, "workerd serve", "SIGKILL");
  const stale = `${notePath}.${process.pid}.stale`;
  await rename(notePath, stale);
  const isSame = (await readFile(stale, "utf8")) === text;
  if (!isSame) await link(stale, notePath);
  await rm(stale, { force: true });
  if (!isSame) throw new StartError("DATA_DIR: another server is starting on it");
}

function parseLock(text: string): Note | undefined {
  try {
    return Note.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
