/**
 * The host of the requests with which the API hands a connection over to an object. The edge refuses this host in visitors'
 * requests, so that no visitor can pass for the API.
 */
export const INTERNAL_HOST = "agent.internal";
