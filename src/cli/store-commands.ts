import type { CliCommand, Option } from './command/command.ts'

const JSON_LINES: Option = { name: 'json', text: 'one JSON object a line, for programs' }

const GOES_ON =
  'If a process works on the store, it continues at once; otherwise the command that continues it is printed. Nothing said ' +
  'or done is lost: legate show ID --nodes lists the nodes of a run.'

/** Commands that change the history of a conversation. */
export const CHANGE_COMMANDS: readonly CliCommand[] = [
  {
    name: 'fork',
    group: 'Change',
    usage: 'ID [NODE] [--rerun] [--title TEXT] [--json]',
    summary: 'branch off at a node; the original does not change',
    about: [
      'Makes a lane with the history up to the node. Without NODE that is the last answer of the run: the lane then waits ' +
        'for an input. At any other node the run continues from there at once.',
      GOES_ON,
    ],
    options: [
      { name: 'rerun', text: 'run subagents again instead of keeping their results' },
      { name: 'title', value: 'TEXT', text: 'the title of the lane' },
      JSON_LINES,
    ],
    examples: [
      ['legate fork 1f0c9a2e', 'a second way to continue after its answer'],
      ['legate fork 1f0c9a2e 77ab01cd --rerun', 'from the middle, with fresh subagents'],
    ],
    takes: [1, 2],
    completes: 'id',
    load: async () => (await import('./commands/change/edit.ts')).fork,
  },
  {
    name: 'retry',
    group: 'Change',
    usage: 'ID [NODE] [--json]',
    summary: 'retry what failed: a model call, a tool, one subagent',
    about: [
      'All other nodes keep their results. Without NODE it retries the node that failed, if there is only one.',
      GOES_ON,
    ],
    options: [JSON_LINES],
    examples: [['legate retry 1f0c9a2e', 'what failed in this run']],
    takes: [1, 2],
    completes: 'id',
    load: async () => (await import('./commands/change/edit.ts')).retry,
  },
  {
    name: 'edit',
    group: 'Change',
    usage: 'ID [NODE] TEXT [--json]',
    summary: 'change a message and get a new answer',
    about: [
      'Without NODE it changes the input of the run; - reads the text from stdin. The old answer and everything after it are ' +
        'set aside and stay in the record.',
      GOES_ON,
    ],
    options: [JSON_LINES],
    examples: [['legate edit 1f0c9a2e "Write about HTTP/2."', 'ask the same run something else']],
    takes: [2, 3],
    completes: 'id',
    load: async () => (await import('./commands/change/edit.ts')).edit,
  },
]

/** Commands for what needs a person beside approvals and questions. */
export const PEOPLE_COMMANDS: readonly CliCommand[] = [
  {
    name: 'inbox',
    group: 'Answer',
    usage: '[--owner NAME] [--json]',
    summary: 'list everything that needs a person, the most urgent first',
    about: [
      'Lists requests and questions, calls whose effect is uncertain, runs that cannot go on by themselves or that no ' +
        'process has code for, and conversations whose newest run failed. Each comes with the command that deals with it.',
    ],
    options: [{ name: 'owner', value: 'NAME', text: 'only what belongs to this owner' }, JSON_LINES],
    examples: [
      ['legate inbox', 'what to do, and how'],
      ['legate inbox --json | jq -r .type | sort | uniq -c', 'how much of it there is'],
    ],
    takes: [0, 0],
    load: async () => (await import('./commands/look/inbox.ts')).inbox,
  },
  {
    name: 'settle',
    group: 'Answer',
    usage: 'ID --seen DIGEST --happened [--result JSON|TEXT] | --run-again | --leave [--by NAME] [--json]',
    summary: 'say what became of a call whose effect is uncertain',
    about: [
      'A call is uncertain if its process died in the middle of it. Find out outside of Legate, then say it here. The ID ' +
        'is that of the call, or of its run; legate inbox and legate show print the DIGEST.',
      'If it happened, the run goes on as if the tool had returned the result. If it did not, the call runs again. ' +
        'Either way an ended run is made anew, and the old one stays in the record.',
      GOES_ON,
    ],
    options: [
      { name: 'seen', value: 'DIGEST', text: 'the digest that the call was shown with: nothing else is settled' },
      { name: 'happened', text: 'it took effect' },
      { name: 'result', value: 'JSON|TEXT', text: 'what the tool would have returned' },
      { name: 'run-again', text: 'it did not take effect: call the tool again' },
      { name: 'leave', text: 'nobody will find out: take it off the list' },
      { name: 'by', value: 'NAME', text: 'who says so, for the record; else $USER' },
      JSON_LINES,
    ],
    examples: [
      ['legate settle 5ab9c1d0 --seen 2b7e... --happened --result 7', 'it was paid, and this is the receipt'],
      ['legate settle 5ab9c1d0 --seen 2b7e... --run-again', 'it was not paid: pay now'],
      ['legate settle 5ab9c1d0 --seen 2b7e... --leave --by ann', 'nobody knows'],
    ],
    takes: [1, 1],
    completes: 'id',
    load: async () => (await import('./commands/change/settle.ts')).settle,
  },
]

/** Commands that explain the state of a run, verify it, and move it elsewhere. */
export const PROOF_COMMANDS: readonly CliCommand[] = [
  {
    name: 'why',
    group: 'Look',
    usage: '[ID] [--json]',
    summary: 'explain why a run does not continue, and what would help',
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
    group: 'Look',
    usage: 'ID1 ID2 [--json]',
    summary: 'compare two runs node by node: inputs, outputs, cost',
    about: ['Ignores ids and times. Exits with 0 if the runs are equal, 1 if they differ.'],
    options: [JSON_LINES],
    examples: [['legate diff 1f0c9a2e 5ab9c1d0', 'what the second run did differently']],
    takes: [2, 2],
    completes: 'id',
    load: async () => (await import('./commands/look/proof.ts')).diff,
  },
  {
    name: 'audit',
    group: 'Look',
    usage: '[ID] [--repair] [--verify] [--json]',
    summary: 'check stored runs for every kind of error',
    about: [
      'Checks the whole store, or the tree of one run. Exits with 1 if it finds an error.',
      'A repair loses nothing; an error that it cannot repair without loss stays. Every repair is an event of its run.',
    ],
    options: [
      { name: 'repair', text: 'repair what can be repaired without loss' },
      { name: 'verify', text: 'compare every record with the hash of its commit' },
      JSON_LINES,
    ],
    examples: [
      ['legate audit', 'the whole store'],
      ['legate audit 1f0c9a2e --verify', 'check that this run is what was recorded, byte for byte'],
    ],
    takes: [0, 1],
    completes: 'id',
    load: async () => (await import('./commands/look/proof.ts')).audit,
  },
  {
    name: 'export',
    group: 'Look',
    usage: 'ID [--html FILE] [--otlp [--to URL] [--content]]',
    summary: 'write a run and everything that belongs to it as JSON Lines, as a page, or as a trace',
    about: [
      'Trees are exported whole: every conversation below the root of the run, with the record of its commits.',
      'With --html the run becomes one file with the inspector in it. It opens in a browser without a server, and asks nobody ' +
        'for anything: send it with a bug report. It holds what was said, so look at it first.',
      'With --otlp it is the trace of the run and of all it started, as OTLP/JSON. It is made from rows: the same run ' +
        'gives the same bytes, also if nobody traced it.',
    ],
    options: [
      { name: 'html', value: 'FILE', text: 'writes the run as a page into this file' },
      { name: 'otlp', text: 'the trace of the run instead, for OpenTelemetry' },
      { name: 'to', value: 'URL', text: 'send the trace to this collector, such as http://localhost:4318' },
      { name: 'content', text: 'with the text of people and models, arguments and results' },
    ],
    examples: [
      ['legate export 1f0c9a2e --otlp --to http://localhost:4318', 'to see it in Jaeger, Grafana or another'],
      ['legate export 1f0c9a2e > run.jsonl', 'to keep it, or to send it'],
      ['legate export 1f0c9a2e --html run.html', 'to look at it anywhere'],
      ['legate export 1f0c9a2e | legate import --store other.db', 'from one store into another'],
    ],
    takes: [1, 1],
    completes: 'id',
    load: async () => (await import('./commands/change/export.ts')).exportRun,
  },
  {
    name: 'import',
    group: 'Change',
    usage: '[FILE] [--go-on] [--json]',
    summary: 'import a file of export, with the same hashes',
    about: [
      'Reads stdin without FILE or with -. Imports everything or nothing: missing or changed lines are refused.',
      'Open runs of it are stopped and named, with what they may do: legate resume ID lets one go on. With --go-on they go on at ' +
        'once, where a process works on the store, and do all that the file says. Then they must not continue where they came from.',
    ],
    options: [{ name: 'go-on', text: 'open runs go on at once: for a file of your own' }, JSON_LINES],
    examples: [['legate import run.jsonl', 'into the store of this user']],
    takes: [0, 1],
    completes: 'file',
    load: async () => (await import('./commands/change/import.ts')).importRun,
  },
  {
    name: 'forget',
    group: 'Change',
    usage: 'ID | --owner ID [--module FILE] [--yes] [--reason TEXT] [--json]',
    summary: 'delete one run with everything that belongs to it, or everything of an owner',
    about: [
      'Deletes the whole tree from the root down and leaves a tombstone, like legate prune. A tree with an open run ' +
        'is refused: use legate cancel ID first.',
      'A tree that was changed outside of the runtime cannot be cancelled, but it can be deleted: name its root.',
      '--owner cancels and deletes everything of an owner: runs, copies of sessions, tokens, webhooks and counters. Nothing ' +
        'brings it back. You are asked first; where nobody can be asked, --yes says that you mean it.',
      '--owner also deletes the files and memories that the owner alone has: in this folder, in the usual folder of memories, and ' +
        'where the agents of --module keep them. Those of another machine are deleted there.',
    ],
    options: [
      { name: 'owner', value: 'ID', text: 'everything of this owner' },
      {
        name: 'module',
        short: 'm',
        value: 'FILE',
        text: 'with --owner: agents whose files and memories it deletes too',
      },
      { name: 'yes', short: 'y', text: 'do not ask first' },
      { name: 'reason', value: 'TEXT', text: 'the reason kept in the tombstone' },
      JSON_LINES,
    ],
    examples: [
      ['legate forget 1f0c9a2e --reason "the customer asked for it"', 'and nothing else'],
      ['legate forget --owner ann --yes', 'all that ann ever started'],
    ],
    takes: [0, 1],
    completes: 'id',
    load: async () => (await import('./commands/change/archive.ts')).forget,
  },
  {
    name: 'prune',
    group: 'Change',
    usage: '[--keep N] [--older-than TIME] [--dry-run] [--json]',
    summary: 'delete ended runs, with everything that belongs to them',
    about: [
      'Needs --keep, --older-than or both. Deletes whole trees, from the root down; a tree with an open run stays. ' +
        'Each leaves a tombstone: when and why it was deleted, its structure, and the hash of its last commit. An export ' +
        'can be imported again.',
      'Later runs use the free space. If more than half of the file is free it also shrinks, unless over 64 MB stay. In PostgreSQL ' +
        'deleted rows are dead until autovacuum takes them away, and its files shrink only with VACUUM FULL.',
    ],
    options: [
      { name: 'keep', value: 'N', text: 'keep this many, the most recently active ones' },
      {
        name: 'older-than',
        value: 'TIME',
        text: 'delete those without activity for this long: 90s, 15m, 12h, 30d, 8w',
      },
      { name: 'dry-run', text: 'only list what would be deleted' },
      JSON_LINES,
    ],
    examples: [
      ['legate prune --older-than 30d --dry-run', 'runs older than a month'],
      ['legate prune --keep 1000', 'all but the last thousand'],
    ],
    takes: [0, 0],
    load: async () => (await import('./commands/change/archive.ts')).prune,
  },
]

/** Commands for a whole store. */
export const STORE_COMMANDS: readonly CliCommand[] = [
  {
    name: 'copy',
    group: 'Change',
    usage: '--from STORE --to STORE [--json]',
    summary: 'copy all runs of one store into another one',
    about: [
      'A STORE is a file, a folder with a store of JSON, or postgres://...; --to makes one that is not there, and one of JSON where ' +
        'the name ends in a slash.',
      'Copies every tree with the hashes of its commits, and the tombstones of deleted ones. Tokens, webhooks, limits and sums of ' +
        'usage stay: the other store has its own.',
      'Say it again where it was ended, or where the first store went on: it takes what is new, and renews trees that went on. ' +
        'An open run goes on in the other store. Stop the processes of the first store before the last copy, and start those of ' +
        'the other one after it: a tree that went on in both is an error, and nothing more is copied then.',
    ],
    options: [
      { name: 'from', value: 'STORE', text: 'the store to read' },
      { name: 'to', value: 'STORE', text: 'the store to write' },
      JSON_LINES,
    ],
    examples: [
      ['legate copy --from runs.db --to postgres://legate@db.example.com/legate', 'from one file to PostgreSQL'],
      ['legate copy --from runs.db --to sessions/', 'into a store of JSON'],
    ],
    takes: [0, 0],
    load: async () => (await import('./commands/change/copy.ts')).copy,
  },
  {
    name: 'restored',
    group: 'Change',
    usage: '[--cancel] [--json]',
    summary: 'say that the store came from a backup, before anything works on it',
    about: [
      'What was done after the backup is not in the store. Open runs would do it again: this makes each effect that they were about ' +
        'to have uncertain, takes the claims of all processes away, and says what is in doubt. legate inbox lists it.',
      'Refuses while a process works on the store. Say it once, after you have restored the store and before you start processes.',
      'A model that is asked again may call a tool again that it had called after the backup: no row knows of that call. With ' +
        '--cancel no open run goes on by itself.',
    ],
    options: [{ name: 'cancel', text: 'also cancel every open run; legate retry goes on with one' }, JSON_LINES],
    examples: [
      ['legate restored --store runs.db', 'after runs.db was put back'],
      ['legate restored --cancel', 'and let a person decide about each run'],
    ],
    takes: [0, 0],
    load: async () => (await import('./commands/change/restored.ts')).restored,
  },
]
