/** Kinds that are a model call. */
export const SPEAKERS: readonly string[] = ['agent_message', 'character_message']
