/** One message of a server. What is longer ends the connection: nobody can say what it was an answer to. */
export const MOST_MESSAGE_BYTES = 16_000_000
/** Of a whole message. What is kept of it may be no deeper than all that is kept. */
export const MOST_MESSAGE_DEPTH = 1_000
export const MOST_TOOLS = 500
export const MOST_PAGES = 50
/** Characters of what is told of a tool, and of what a server tells of itself. */
export const MOST_DESCRIPTION = 8_000
/** The end of what a server writes to its standard error is kept for messages. */
export const KEPT_ERROR_CHARS = 2_000
