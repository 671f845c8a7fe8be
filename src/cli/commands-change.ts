import type { Command, Option } from './command.ts'

const JSON_LINES: Option = { name: 'json', text: 'one JSON object a line, for programs' }

const GOES_ON =
  'A process that works on the store goes on with it at once; else the command that does is printed. Nothing that was said or ' +
  'done is lost: legate show ID --nodes lists the nodes of a run.'

/** What changes the history of a conversation. */
export const CHANGE_COMMANDS: readonly Command[] = [
  {
    name: 'fork',
    usage: 'ID [NODE] [--rerun] [--title TEXT] [--json]',
    summary: 'another way to go on from a node; the original stays as it is',
    about: [
      'Makes a lane that knows what was known at the node. Without NODE it is the last answer of the run: the lane then waits ' +
        'for an input. At any other node the run goes on from there at once.',
      GOES_ON,
    ],
    options: [
      { name: 'rerun', text: 'subagents run again, instead of keeping what they came to' },
      { name: 'title', value: 'TEXT', text: 'what the lane is called' },
      JSON_LINES,
    ],
    examples: [
      ['legate fork 1f0c9a2e', 'go on from its answer, twice'],
      ['legate fork 1f0c9a2e 77ab01cd --rerun', 'from the middle of it, with fresh subagents'],
    ],
    takes: [1, 2],
    completes: 'id',
    load: async () => (await import('./commands/fork.ts')).fork,
  },
  {
    name: 'retry',
    usage: 'ID [NODE] [--json]',
    summary: 'do once more what failed: a model call, a tool, one subagent',
    about: ['Everything beside the node keeps its result. Without NODE it is what failed, if only one did.', GOES_ON],
    options: [JSON_LINES],
    examples: [['legate retry 1f0c9a2e', 'what failed in this run']],
    takes: [1, 2],
    completes: 'id',
    load: async () => (await import('./commands/retry.ts')).retry,
  },
  {
    name: 'edit',
    usage: 'ID [NODE] TEXT [--json]',
    summary: 'say something else than was said, and have it answered anew',
    about: [
      'Without NODE it is what the run was asked; - reads the text from stdin. What was answered, and all that came after it, is ' +
        'set aside and stays in the record.',
      GOES_ON,
    ],
    options: [JSON_LINES],
    examples: [['legate edit 1f0c9a2e "Write about HTTP/2."', 'ask the same run something else']],
    takes: [2, 3],
    completes: 'id',
    load: async () => (await import('./commands/edit.ts')).edit,
  },
]
