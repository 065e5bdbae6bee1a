import type { CommandSpec } from "../command.ts";

export const COMPLETION = {
  name: "completion",
  summary: "complete commands and options with the Tab key",
  usages: ["completion", "completion bash|zsh|fish"],
  description: "Without a shell's name it says how to install completion for your shell.",
  examples: [['eval "$(underpass completion bash)"', "for this terminal only"]],
  arguments: ["bash", "zsh", "fish"],
  options: {},
} as const satisfies CommandSpec;
