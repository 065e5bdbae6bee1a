/** The options that choose the server and the token. */
import type { OptionSpecs } from "../options.ts";

export const CA_FILE_OPTION = {
  "ca-file": {
    kind: "text",
    placeholder: "FILE",
    help: "a file with CA certificates in PEM format to trust too, for the server and proxies",
    complete: "file",
  },
} as const satisfies OptionSpecs;

export const SERVER_OPTION = {
  server: {
    kind: "text",
    placeholder: "URL",
    help: "the Underpass server (default: the last login)",
  },
} as const satisfies OptionSpecs;

/** Every command that uses the API has these options. */
export const API_OPTIONS = {
  ...SERVER_OPTION,
  ...CA_FILE_OPTION,
  "token-file": {
    kind: "text",
    placeholder: "FILE",
    help: "a file with the capability token, as bytes or in base64 (default: UNDERPASS_TOKEN, or the last login)",
    complete: "file",
  },
} as const satisfies OptionSpecs;
