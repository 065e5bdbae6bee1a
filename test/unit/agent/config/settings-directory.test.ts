/** Where the agent keeps its settings on each system. */
import { expect, test } from "vitest";
import { getSettingsDirectory } from "../../../../agent/settings.ts";

const HOME = "C:\\Users\\me";
const APPDATA = "C:\\Users\\me\\AppData\\Roaming";

test.each<[string, NodeJS.ProcessEnv, string, NodeJS.Platform, string]>([
  ["Linux", {}, "/home/me", "linux", "/home/me/.config/underpass"],
  ["macOS", { APPDATA: "/unused" }, "/Users/me", "darwin", "/Users/me/.config/underpass"],
  ["Windows", { APPDATA }, HOME, "win32", `${APPDATA}\\underpass`],
  ["Windows without APPDATA", {}, HOME, "win32", "C:\\Users\\me\\.config\\underpass"],
  [
    "Windows with XDG_CONFIG_HOME",
    { APPDATA, XDG_CONFIG_HOME: "D:\\settings" },
    HOME,
    "win32",
    "D:\\settings\\underpass",
  ],
  [
    "Linux with XDG_CONFIG_HOME",
    { XDG_CONFIG_HOME: "/etc/me" },
    "/home/me",
    "linux",
    "/etc/me/underpass",
  ],
])("the settings' directory on %s", (_, environment, home, platform, expected) => {
  expect(getSettingsDirectory(environment, home, platform, () => false)).toBe(expected);
});

test("on Windows, the directory of earlier versions is used if it exists", () => {
  const earlier = "C:\\Users\\me\\.config\\underpass";
  const exists = (path: unknown) => path === earlier;
  expect(getSettingsDirectory({ APPDATA }, HOME, "win32", exists)).toBe(earlier);
});
