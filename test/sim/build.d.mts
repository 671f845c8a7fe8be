/** Gives the path of the built file, in a folder of its own. */
export function buildSimulation(): Promise<string>
