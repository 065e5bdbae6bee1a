/** The value of `--basic-auth`, `--policy-file` and `--allow` that removes what the tunnel has from an earlier run. */
export const OFF = "off";
