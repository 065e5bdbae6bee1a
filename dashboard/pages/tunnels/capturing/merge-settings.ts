/** Capture settings while they are edited. Saving replaces all of them, and another user may have changed some meanwhile. */
import type { TunnelCaptureSettings } from "../../../../protocol/schemas/inspector/captures.ts";
import { parseLines } from "../../../ui/forms/lines.ts";

export interface EditedSettings {
  capture: boolean;
  bodies: boolean;
  allowReplay: boolean;
  /** As typed, one name per line. */
  redactHeaders: string;
}

type SentSettings = Pick<
  TunnelCaptureSettings,
  "capture" | "bodies" | "allowReplay" | "redactHeaders"
>;

export function toEditedSettings(settings: SentSettings): EditedSettings {
  const { capture, bodies, allowReplay, redactHeaders } = settings;
  return { capture, bodies, allowReplay, redactHeaders: redactHeaders.join("\n") };
}

/**
 * Applies the changes of the user to the settings as they are now.
 *
 * @param base the settings when the user began to edit.
 */
export function mergeSettings(
  base: SentSettings,
  edited: EditedSettings,
  current: SentSettings,
): SentSettings {
  const pick = (name: "capture" | "bodies" | "allowReplay") =>
    edited[name] === base[name] ? current[name] : edited[name];
  return {
    capture: pick("capture"),
    bodies: pick("bodies"),
    allowReplay: pick("allowReplay"),
    redactHeaders: mergeHeaders(base, parseLines(edited.redactHeaders), current),
  };
}

/** The typed names, with those that another user has added, and without those that another user has removed. */
function mergeHeaders(base: SentSettings, typed: string[], current: SentSettings): string[] {
  const { redactHeaders: before } = base;
  const { redactHeaders: now } = current;
  const isRemoved = (name: string) => before.includes(name) && !now.includes(name);
  const lowerCase = new Set(typed.map((name) => name.toLowerCase()));
  const added = now.filter((name) => !before.includes(name) && !lowerCase.has(name));
  return [...typed.filter((name) => !isRemoved(name.toLowerCase())), ...added];
}
