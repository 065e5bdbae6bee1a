/** The value of `--basic-auth` and `--policy-file` that removes what the tunnel has from an earlier run. */
export const OFF = "off";
