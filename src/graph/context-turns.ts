/** How many rounds a child of the spawn tools is shown where nobody says how many, and how many a page has. */
export const CONTEXT_TURNS = 50

/** What all other models are shown: every round that counts, or a summary of it. */
export const ALL_TURNS: number = Number.POSITIVE_INFINITY
