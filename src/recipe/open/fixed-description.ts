import type { Surface } from './spec.ts'

const PARALLEL =
  'For independent work put several calls into one message: they run at the same time, and their results come together.'

const FIXED: Readonly<Record<Surface, string>> = {
  subagent: `Hands a task to a subagent, which works on its own in a conversation of its own and reports back.
Modes:
1. Ad-hoc: "instructions" say what to do, with all that must be known; the subagent sees nothing else of this conversation.
2. Predefined: "subrecipe" names one of the subrecipes below; "parameters" give its values.
3. Augmented: both; the instructions are added to what the subrecipe says.
"extensions" limits its tools ([] is none), "settings" chooses its model. With "summary": false you get all it said and found instead of its last message.
${PARALLEL}`,
  delegate: `Hands a task to a subagent, which works on its own and reports back.
"instructions" say what to do (Ad-hoc); "source" names a subrecipe, recipe, agent or skill; with both, the instructions are added to it.
With "async": true it works in the background: you get its id at once, and load(source: "<id>") waits for its result.
${PARALLEL}`,
  Agent: `Starts a new agent that does a task on its own and reports back in one message (Ad-hoc, or one of the types below as "subagent_type").
${PARALLEL}`,
}

/** What a tool that starts subagents is said to be for, whatever its agent may start by name. */
export function fixedDescription(surface: Surface): string {
  return FIXED[surface]
}
