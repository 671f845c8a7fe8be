/** How many rounds a model is shown where nobody says how many. */
export const CONTEXT_TURNS = 50
