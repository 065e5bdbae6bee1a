/** The meaning of a color: whether the thing that has it is good or bad. */
export type Tone = "neutral" | "good" | "warning" | "bad";
