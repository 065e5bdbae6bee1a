export const message = "Change me in message.js";
