/** What a colour says about the thing that has it. */
export type Tone = "neutral" | "good" | "warning" | "bad";
