/** The inspectors of `underpass start`: one for all tunnels, and those of tunnels with an address of their own. */
import { nameKeys } from "../config/option-keys.ts";
import type { ListenAddress } from "../connect/listen-address.ts";
import { InspectedTunnels } from "../inspect/inspected-tunnels.ts";
import { startInspectServer } from "../inspect/start-inspect-server.ts";
import type { NamedTunnel, TunnelGroup } from "./tunnel-group.ts";

export class GroupInspectors {
  readonly #group: TunnelGroup;
  readonly #shared = new InspectedTunnels();
  #stopShared = (): void => undefined;
  /** By the tunnel's name: a function that stops its own inspector. */
  readonly #own = new Map<string, Promise<() => void>>();

  constructor(group: TunnelGroup) {
    this.#group = group;
    group.on("opened", (named) => this.#open(named));
    group.on("closed", (name) => this.#close(name));
  }

  /** Starts the inspector of all tunnels. @param given `--inspect` of the command line. */
  async start(given: ListenAddress | "off" | undefined): Promise<void> {
    this.#stopShared = await startInspectServer(this.#group, this.#shared, given);
  }

  stop(): void {
    this.#stopShared();
    for (const name of this.#own.keys()) this.#close(name);
  }

  #open(named: NamedTunnel): void {
    const { name, inspect } = named;
    if (inspect === "off") return;
    if (inspect === undefined) return add(this.#shared, named);
    const inspected = new InspectedTunnels();
    add(inspected, named);
    const agent = {
      inspectUrl: undefined,
      emit: (event: "notice", message: string) =>
        this.#group.emit(event, `${name}: ${nameKeys(message)}`),
    };
    // A tunnel that is reopened listens at the same address again.
    const before = this.#own.get(name);
    const started = (async () => {
      await before;
      return startInspectServer(agent, inspected, inspect);
    })();
    this.#own.set(name, started);
  }

  #close(name: string): void {
    this.#shared.remove(name);
    void this.#own.get(name)?.then((stop) => stop());
  }
}

function add(inspected: InspectedTunnels, named: NamedTunnel): void {
  if (named.protocol === "http") inspected.addHttp(named.tunnel, named.name);
  else inspected.addTcp(named.tunnel, named.target.text, named.name);
}
