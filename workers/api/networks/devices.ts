/** /private-networks/{id}/devices: the devices of a network, identified by their public keys. */
import { z } from "zod";
import {
  Device,
  DeviceId,
  EnrollDevice,
  DeviceEnrollment,
  NetworkConfig,
} from "../../../protocol/schemas/networks.ts";
import { IdParams, Ok, PageQuery } from "../../../protocol/schemas/scalars.ts";
import { ApiError } from "../../errors.ts";
import {
  enrollDevice,
  findDevice,
  listDevices,
  removeDevice,
} from "../../store/networks/devices.ts";
import { ACCEPTED_BEARERS, allowOrAgent } from "../guard.ts";
import { getCallerActor, invalidField, jsonResponse, notFound, route } from "../route.ts";
import {
  networkNotFound,
  createNetworkRouter,
  requireNetwork,
  serverNotRegistered,
} from "./router.ts";
import { formatClientConfig } from "./wireguard-configs.ts";
import { getAddressAt, getPublicEndpoint, loadDeviceViews } from "./views.ts";

export const networkDevices = createNetworkRouter();

networkDevices.openapi(
  route({
    operationId: "listNetworkDevices",
    method: "get",
    path: "/private-networks/{id}/devices",
    summary: "List the devices of a private network",
    description: ACCEPTED_BEARERS,
    guard: allowOrAgent("networks:read"),
    params: IdParams,
    query: PageQuery,
    responses: { 200: jsonResponse("The devices, newest first.", z.array(Device)) },
  }),
  async (c) => {
    const network = await requireNetwork(c, c.req.valid("param").id);
    const rows = await listDevices(c.var.db, network.id, c.req.valid("query"));
    return c.json(await loadDeviceViews(c.env, network, rows), 200);
  },
);

networkDevices.openapi(
  route({
    operationId: "enrollNetworkDevice",
    method: "post",
    path: "/private-networks/{id}/devices",
    summary: "Enroll a device in a private network",
    description: `The device gets the next free address. Enrolling the same key again returns the same device. ${ACCEPTED_BEARERS}`,
    guard: allowOrAgent("networks:write"),
    params: IdParams,
    body: EnrollDevice,
    responses: {
      201: jsonResponse(
        "Enrolled. The configuration of the WireGuard server must be updated too.",
        DeviceEnrollment,
      ),
    },
    failures: ["invalid_name", "network_full"],
  }),
  async (c) => {
    const { name, public_key: publicKey } = c.req.valid("json");
    const { id } = c.req.valid("param");
    const enrolled = await enrollDevice(c.var.db, getCallerActor(c), id, { name, publicKey });
    switch (enrolled) {
      case "not_found":
        throw networkNotFound();
      case "key_of_server":
        throw invalidField("public_key", "must not be the key of the network's server");
      case "network_full":
        throw new ApiError(
          "network_full",
          "The network has no free address left. Remove a device first.",
        );
      default: {
        const { network } = enrolled;
        const [device] = await loadDeviceViews(c.env, network, [enrolled.device]);
        return c.json({ device: device!, network_cidr: network.cidr }, 201);
      }
    }
  },
);

networkDevices.openapi(
  route({
    operationId: "removeNetworkDevice",
    method: "delete",
    path: "/private-networks/{id}/devices/{device_id}",
    summary: "Remove a device from a private network",
    description: `The WireGuard server accepts the device until its configuration is applied again. ${ACCEPTED_BEARERS}`,
    guard: allowOrAgent("networks:write"),
    params: DeviceId,
    responses: { 200: jsonResponse("Removed. The address of the device is free.", Ok) },
  }),
  async (c) => {
    const { id, device_id: deviceId } = c.req.valid("param");
    switch (await removeDevice(c.var.db, getCallerActor(c), id, deviceId)) {
      case "network_not_found":
        throw networkNotFound();
      case "not_found":
        throw notFound("device");
      case "removed":
        return c.json({ ok: true as const }, 200);
    }
  },
);

networkDevices.openapi(
  route({
    operationId: "getNetworkDeviceConfig",
    method: "get",
    path: "/private-networks/{id}/devices/{device_id}/config",
    summary: "Get the WireGuard configuration of a device",
    description: `In the format of \`wg-quick\`, with a placeholder for the private key. ${ACCEPTED_BEARERS}`,
    guard: allowOrAgent("networks:read"),
    params: DeviceId,
    responses: {
      200: jsonResponse(
        "The configuration. It routes only the traffic of the network.",
        NetworkConfig,
      ),
    },
    failures: ["server_not_registered"],
  }),
  async (c) => {
    const { id, device_id: deviceId } = c.req.valid("param");
    const network = await requireNetwork(c, id);
    const device = await findDevice(c.var.db, network.id, deviceId);
    if (!device) throw notFound("device");
    const { serverPublicKey, cidr } = network;
    const endpoint = getPublicEndpoint(network);
    if (serverPublicKey === null || endpoint === null) throw serverNotRegistered();
    const config = formatClientConfig({
      networkName: network.name,
      deviceName: device.name,
      address: getAddressAt(cidr, device.hostNumber),
      serverPublicKey,
      endpoint,
      cidr,
    });
    return c.json({ config }, 200);
  },
);
