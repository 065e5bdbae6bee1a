/** The tab with the capture settings of a tunnel: which requests are stored, and which parts of them. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { TunnelCaptureSettings } from "../../../../protocol/schemas/inspector/captures.ts";
import type { Tunnel } from "../../../../protocol/schemas/tunnels/tunnels.ts";
import { captureSettingsQuery } from "../../../api/capture-settings.ts";
import { call } from "../../../api/session.ts";
import { useHasRole } from "../../../app/roles.ts";
import { CommandLine } from "../../../ui/command-line.tsx";
import { Fact, Facts } from "../../../ui/facts.tsx";
import { notify } from "../../../ui/feedback/notifications.tsx";
import { QueryContent } from "../../../ui/feedback/query-content.tsx";
import { ConfirmButton } from "../../../ui/forms/dialog.tsx";
import { CheckField, TextAreaField } from "../../../ui/forms/fields.tsx";
import { Form } from "../../../ui/forms/form.tsx";
import { parseLines, withEntryErrors } from "../../../ui/forms/lines.ts";
import { Section } from "../../../ui/section.tsx";

export function CapturingTab({ tunnel }: { tunnel: Tunnel }) {
  const { id } = tunnel;
  const settings = useQuery(captureSettingsQuery(id));
  const canChange = useHasRole("member");
  return (
    <>
      <Section title="Capturing">
        <QueryContent query={settings} lines={6}>
          {(loaded) =>
            canChange ? <SettingsForm settings={loaded} /> : <SettingsFacts settings={loaded} />
          }
        </QueryContent>
      </Section>
      <CapturedRequestsSection tunnel={tunnel} canDelete={canChange} />
      <CommandLine
        requests={[
          { label: "Read the settings", path: `/tunnels/${id}/inspector` },
          {
            label: "Replace all settings",
            method: "PUT",
            path: `/tunnels/${id}/inspector`,
            body: { capture: true, bodies: false, redactHeaders: ["authorization", "cookie"] },
          },
          {
            label: "Delete the captured requests",
            method: "DELETE",
            path: `/inspector?tunnel_id=${id}`,
          },
        ]}
      />
    </>
  );
}

function SettingsForm({ settings }: { settings: TunnelCaptureSettings }) {
  const { id, capture, bodies, allowReplay, redactHeaders } = settings;
  const queries = useQueryClient();
  return (
    <Form
      submit="Save"
      onSubmit={async (value) => {
        const headers = parseLines(value("redactHeaders"));
        const changed = {
          capture: value("capture") === "on",
          bodies: value("bodies") === "on",
          allowReplay: value("allowReplay") === "on",
          redactHeaders: headers,
        };
        const sent = call<TunnelCaptureSettings>("PUT", `/tunnels/${id}/inspector`, changed);
        const saved = await withEntryErrors({ redactHeaders: headers }, sent);
        queries.setQueryData(captureSettingsQuery(id).queryKey, saved);
        notify("The settings apply from the next request.");
      }}
    >
      <CheckField
        name="capture"
        label="Capture requests"
        defaultChecked={capture}
        hint="Stores every request with its response, for as long as the plan includes."
      />
      <CheckField
        name="bodies"
        label="Capture bodies and messages"
        defaultChecked={bodies}
        hint="The first 512 KiB in each direction."
      />
      <CheckField
        name="allowReplay"
        label="Allow replays"
        defaultChecked={allowReplay}
        hint="Members can send a captured request to the local server again."
      />
      <TextAreaField
        name="redactHeaders"
        label="Redacted headers"
        required={false}
        className="code-area"
        defaultValue={redactHeaders.join("\n")}
        spellCheck={false}
        hint="Their values are never stored. One name per line, at most 100."
      />
    </Form>
  );
}

/** For users who may not change the settings. */
function SettingsFacts({ settings }: { settings: TunnelCaptureSettings }) {
  const { capture, bodies, allowReplay, redactHeaders } = settings;
  return (
    <Facts>
      <Fact name="Capture requests">{capture ? "yes" : "no"}</Fact>
      <Fact name="Capture bodies and messages">{bodies ? "yes" : "no"}</Fact>
      <Fact name="Allow replays">{allowReplay ? "yes" : "no"}</Fact>
      <Fact name="Redacted headers">{redactHeaders.join(", ") || "none"}</Fact>
    </Facts>
  );
}

interface CapturedRequestsProps {
  tunnel: Tunnel;
  canDelete: boolean;
}

function CapturedRequestsSection({ tunnel, canDelete }: CapturedRequestsProps) {
  const { id, name } = tunnel;
  const queries = useQueryClient();
  const deleteAll = (
    <ConfirmButton
      button={{ children: "Delete all", "aria-label": "Delete all captured requests" }}
      title="Delete the captured requests?"
      submit="Delete"
      name={name}
      onSubmit={async () => {
        await call("DELETE", `/inspector?tunnel_id=${id}`);
        await queries.invalidateQueries();
        notify(`The captured requests of ${name} were deleted.`);
      }}
    >
      <p>
        Every request of <strong>{name}</strong> that was captured until now is deleted. This can't
        be undone.
      </p>
    </ConfirmButton>
  );
  return (
    <Section
      title="Captured requests"
      actions={
        <>
          <Link to="/requests" search={{ tunnel_id: id }} className="button">
            Open
          </Link>
          {canDelete && deleteAll}
        </>
      }
    >
      <p className="hint">
        At most 64 MiB for each tunnel: the oldest requests are deleted first, and all of them with
        the tunnel.
      </p>
    </Section>
  );
}
