import type { CliCommand, Option } from './command/command.ts'

const JSON_LINES: Option = { name: 'json', text: 'one JSON object a line, for programs' }

const GOES_ON =
  'A process that works on the store goes on with it at once; else the command that does is printed. Nothing that was said or ' +
  'done is lost: legate show ID --nodes lists the nodes of a run.'

/** Commands that change the history of a conversation. */
export const CHANGE_COMMANDS: readonly CliCommand[] = [
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
    load: async () => (await import('./commands/change/edit.ts')).fork,
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
    load: async () => (await import('./commands/change/edit.ts')).retry,
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
    load: async () => (await import('./commands/change/edit.ts')).edit,
  },
]

/** Commands that explain the state of a run, verify it, and move it elsewhere. */
export const PROOF_COMMANDS: readonly CliCommand[] = [
  {
    name: 'why',
    usage: '[ID] [--json]',
    summary: 'why a run does not go on: what it waits for, and what would help',
    about: [
      'Names the person, the subagent, the missing agent, the process that is gone, the limit or the budget, here and ' +
        'below, and the command that would help.',
    ],
    options: [JSON_LINES],
    examples: [['legate why 1f0c9a2e', 'in words, from the root to where it stands']],
    takes: [0, 1],
    completes: 'id',
    load: async () => (await import('./commands/look/proof.ts')).why,
  },
  {
    name: 'diff',
    usage: 'ID1 ID2 [--json]',
    summary: 'two runs node by node: inputs, outputs, cost',
    about: ['Ids and times do not count. Exits with 0 if the runs are the same, 1 if they differ.'],
    options: [JSON_LINES],
    examples: [['legate diff 1f0c9a2e 5ab9c1d0', 'what the second did otherwise']],
    takes: [2, 2],
    completes: 'id',
    load: async () => (await import('./commands/look/proof.ts')).diff,
  },
  {
    name: 'audit',
    usage: '[ID] [--repair] [--verify] [--json]',
    summary: 'look for everything that can be wrong with stored runs',
    about: [
      'Looks through the whole store, or the tree of one run. Exits with 1 if it finds an error.',
      'A repair loses nothing: what it cannot mend so, it leaves as it is. Every repair is an event of its run.',
    ],
    options: [
      { name: 'repair', text: 'mend what can be mended' },
      { name: 'verify', text: 'hold every record against the hashes of what was committed' },
      JSON_LINES,
    ],
    examples: [
      ['legate audit', 'the whole store'],
      ['legate audit 1f0c9a2e --verify', 'is this run, byte for byte, what was recorded?'],
    ],
    takes: [0, 1],
    completes: 'id',
    load: async () => (await import('./commands/look/proof.ts')).audit,
  },
  {
    name: 'export',
    usage: 'ID',
    summary: 'a run and all that belongs to it as JSON Lines',
    about: ['Trees are exported whole: every conversation below the root of the run, with the record of its commits.'],
    options: [],
    examples: [
      ['legate export 1f0c9a2e > run.jsonl', 'to keep it, or to send it'],
      ['legate export 1f0c9a2e | legate import --store other.db', 'from one store into another'],
    ],
    takes: [1, 1],
    completes: 'id',
    load: async () => (await import('./commands/change/archive.ts')).exportRun,
  },
  {
    name: 'import',
    usage: '[FILE] [--json]',
    summary: 'take what export gave, with the same hashes',
    about: [
      'Without FILE, or with -, reads stdin. Takes all of it or nothing: lines that are missing or changed are refused.',
      'A run that is not over can go on here. Then it should not go on where it came from.',
    ],
    options: [JSON_LINES],
    examples: [['legate import run.jsonl', 'into the store of this user']],
    takes: [0, 1],
    completes: 'file',
    load: async () => (await import('./commands/change/archive.ts')).importRun,
  },
  {
    name: 'forget',
    usage: 'ID [--reason TEXT] [--json]',
    summary: 'delete one run with all that belongs to it',
    about: [
      'Its tree goes whole, from the root down, and leaves a tombstone, as by legate prune. While a run of it is not over it ' +
        'is refused: legate cancel ID first.',
      'A tree that was changed outside of the runtime cannot be cancelled. It goes as it is: name its root.',
    ],
    options: [{ name: 'reason', value: 'TEXT', text: 'what the tombstone says' }, JSON_LINES],
    examples: [['legate forget 1f0c9a2e --reason "the customer asked for it"', 'and nothing else']],
    takes: [1, 1],
    completes: 'id',
    load: async () => (await import('./commands/change/archive.ts')).forget,
  },
  {
    name: 'prune',
    usage: '[--keep N] [--older-than TIME] [--dry-run] [--json]',
    summary: 'delete runs that are over, with all that belongs to them',
    about: [
      'Needs --keep, --older-than or both. Trees go whole, from the root of a run down; one with a run that is not over stays. ' +
        'Of each a tombstone is left: when and why it went, whose child was whose, and the hash of its last commit. What was ' +
        'exported before can be imported again.',
      'What comes next takes the room. Where more of the file is free than used it also gets smaller, unless over 64 MB stay.',
    ],
    options: [
      { name: 'keep', value: 'N', text: 'so many stay: those in which something happened last' },
      {
        name: 'older-than',
        value: 'TIME',
        text: 'those in which nothing happened for so long: 90s, 15m, 12h, 30d, 8w',
      },
      { name: 'dry-run', text: 'only say what would go' },
      JSON_LINES,
    ],
    examples: [
      ['legate prune --older-than 30d --dry-run', 'what is a month old'],
      ['legate prune --keep 1000', 'all but the last thousand'],
    ],
    takes: [0, 0],
    load: async () => (await import('./commands/change/archive.ts')).prune,
  },
]
