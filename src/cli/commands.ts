// The table of commands: names, options, help texts and examples.
//
// To add a command, write `commands/x.ts` and add an entry here (or in `store-commands.ts` for commands that only work on
// the store). Help, completion and argument checks come from the entry.
// Called by: `main`, `read-args`, `commands/help`, `commands/completion`.
//
// Must stay true:
// - An entry is data. `load` imports the code of the command when it runs, and not before.
// - Every example works as written.

import type { CliCommand, Option } from './command/command.ts'
import { ALLOW, DENY, SERVER_COMMANDS } from './server-commands.ts'
import { CHANGE_COMMANDS, PEOPLE_COMMANDS, PROOF_COMMANDS, STORE_COMMANDS } from './store-commands.ts'

const JSON_LINES: Option = { name: 'json', text: 'one JSON object a line, for programs' }
const REASON: Option = { name: 'reason', value: 'TEXT', text: 'the reason, which is recorded and shown to the agent' }
const SEEN_OPTION: Option = {
  name: 'seen',
  value: 'DIGEST',
  text: 'the digest that the request was shown with: nothing else is answered',
}

const PARAM: Option = {
  name: 'param',
  short: 'p',
  value: 'KEY=VALUE',
  isList: true,
  text: 'a parameter of the file; may be repeated',
}
const MODEL: Option = { name: 'model', value: 'MODEL', text: 'provider/model, used instead of the one in the file' }

const COMPAT: Option = {
  name: 'compat',
  value: 'aster',
  text: 'offer subagents as aster does: not to gemini models, and only beside other tools',
}

const MODULE: Option = { name: 'module', short: 'm', value: 'FILE', text: 'the module that exports your agents' }
const AGENT: Option = { name: 'agent', value: 'NAME', text: 'which agent of the module to use, if it exports several' }

const NO_PROJECT: Option = {
  name: 'no-project-files',
  text: 'do not tell agents of files what AGENTS.md, CLAUDE.md and their like say',
}
const YES: Option = { name: 'yes', short: 'y', text: 'allow every request without asking' }

/** Every command in the order of the help. A command's code is loaded when it runs. */
export const COMMANDS: readonly CliCommand[] = [
  {
    name: 'demo',
    group: 'Run',
    usage: '',
    summary: 'watch a run survive kill -9: one agent, three subagents, nothing done twice',
    about: ['Needs no key, no network and no store. Takes about five seconds and leaves no file behind.'],
    options: [],
    examples: [['legate demo', 'watch a run survive the loss of its process']],
    takes: [0, 0],
    load: async () => {
      const { demo } = await import('./demo/command.ts')
      return () => demo(process.argv[1] ?? '')
    },
  },
  {
    name: 'run',
    group: 'Run',
    usage:
      'FILE [TEXT] [--agent NAME] [--param KEY=VALUE] [--model MODEL] [--compat aster] [--allow RULE] [--deny RULE] [--yes] [--json]',
    summary: 'run a recipe, an agent file or an agent in code, and print the answer',
    about: [
      'FILE is a path, or a name that legate doctor lists. TEXT replaces the prompt of the file; - reads it from ' +
        'stdin.',
      'FILE may also be a module (.js, .mjs; .ts from Node 22.18 on) that exports agents; their code decides what they may do. ' +
        '--module FILE is the same. There --allow RULE answers what their grants ask for, and --deny RULE takes away.',
      'A recipe or agent file may read below the current folder; it asks before it writes, deletes, runs a program or uses the network. In a ' +
        'terminal it asks you here, also for missing parameters. Elsewhere it asks nothing: the run waits, with exit ' +
        'code 3 and the command that answers. --allow RULE lets single requests pass, --deny RULE refuses them, --yes allows all.',
      'A Claude agent file with Bash(git log:*) runs such commands without asking; the run says so first.',
      'If stdout is not a terminal, only the answer goes there; progress goes to stderr.',
      'With --server, FILE is the name of an agent of that server, which runs it.',
    ],
    options: [PARAM, MODEL, COMPAT, MODULE, AGENT, ALLOW, DENY, NO_PROJECT, YES, JSON_LINES],
    examples: [
      ['legate run recipe.yaml --param topic=QUIC', 'a recipe'],
      ['legate run .claude/agents/reviewer.md "Review src/"', 'an agent file'],
      ['legate run agents.mjs --agent poet "Write about roses."', 'an agent written in code'],
      [
        "legate run fixer --allow 'exec:npm test' --deny 'net:*' 'Fix the tests.'",
        'what it may do without you, and never',
      ],
      ['legate run reviewer - < notes.txt > review.md', 'by name, with input and answer in files'],
    ],
    takes: [0, 2],
    completes: 'file',
    load: async () => (await import('./commands/run.ts')).run,
  },
  {
    name: 'chat',
    group: 'Run',
    usage:
      '[FILE] [--agent NAME] [--param KEY=VALUE] [--model MODEL] [--compat aster] [--allow RULE] [--deny RULE] [--continue ID]',
    summary: 'chat with an agent and keep the conversation',
    about: [
      'FILE is a recipe, an agent file, a name that legate doctor lists, or a module; without it you talk to an assistant. A message that ' +
        'begins with @name goes to the definition of that name, as a subagent.',
      'It asks as legate run does, and --allow RULE and --deny RULE mean the same, for files and modules.',
      'Ctrl-C stops the answer, a second Ctrl-C leaves; so does Ctrl-D. If stdin is not a terminal, each line is a message.',
    ],
    options: [
      PARAM,
      MODEL,
      COMPAT,
      MODULE,
      AGENT,
      ALLOW,
      DENY,
      NO_PROJECT,
      { name: 'continue', short: 'c', value: 'ID', text: 'continue this conversation' },
      YES,
    ],
    examples: [
      ['legate chat', 'then, for example: @reviewer look at src/'],
      ['legate chat tutor.yaml -p topic=QUIC', 'talk about a recipe'],
      ['legate chat --continue 1f0c9a2e', 'where you left off'],
    ],
    takes: [0, 1],
    completes: 'file',
    load: async () => (await import('./commands/chat.ts')).chat,
  },
  {
    name: 'init',
    group: 'Run',
    usage: '[FILE]',
    summary: 'write a small working recipe to start from',
    about: ['FILE is recipe.yaml by default. An existing file is not changed.'],
    options: [],
    examples: [['legate init && legate run recipe.yaml -p topic=QUIC', 'the first run']],
    takes: [0, 1],
    completes: 'file',
    load: async () => (await import('./commands/init.ts')).init,
  },
  {
    name: 'ps',
    group: 'Look',
    usage: '[--all | --processes] [-q] [--json]',
    summary: 'list open runs and those that ended last, one for each conversation, or processes',
    options: [
      { name: 'all', short: 'a', text: 'every run of the store' },
      {
        name: 'processes',
        text: 'the processes of all machines instead: what they run, and when they were last heard',
      },
      { name: 'quiet', short: 'q', text: 'short ids only; with --processes, their pids' },
      JSON_LINES,
    ],
    examples: [
      ['legate ps', 'open runs, and what each waits for'],
      ['legate ps --store ./runs.db', 'the runs of another store'],
      ['legate ps --all --json | jq -r .agent', 'every run, for programs'],
      ['legate ps --processes', 'who works on this store, on which machine'],
    ],
    takes: [0, 0],
    load: async () => (await import('./commands/look/ps.ts')).ps,
  },
  {
    name: 'show',
    group: 'Look',
    usage: '[ID] [--nodes | --graph [--dot]] [--json]',
    summary: 'show one run: input, outcome, answer, usage, subagents',
    options: [
      { name: 'nodes', text: 'list its nodes instead, one a line, with their ids' },
      { name: 'graph', text: 'draw its nodes and edges instead, for Mermaid' },
      { name: 'dot', text: 'draw them for Graphviz' },
      JSON_LINES,
    ],
    examples: [
      ['legate show 1f0c9a2e', 'the last characters of an id are enough, at least 4'],
      ['legate show 9a2e --json | jq .outcome', 'how it ended, for programs'],
      ['legate show 9a2e --graph --dot | dot -Tsvg > run.svg', 'a drawing of every node, subagents included'],
    ],
    takes: [0, 1],
    completes: 'id',
    load: async () => (await import('./commands/look/show.ts')).show,
  },
  {
    name: 'tree',
    group: 'Look',
    usage: '[ID] [-f] [--json]',
    summary: 'show who delegated to whom, the state of each agent, and what it waits for',
    options: [{ name: 'follow', short: 'f', text: 'update it until the run ends' }, JSON_LINES],
    examples: [
      ['legate tree 1f0c9a2e', 'the tree as it is now'],
      ['legate tree -f 1f0c9a2e', 'watch it, from any terminal'],
    ],
    takes: [0, 1],
    completes: 'id',
    load: async () => (await import('./commands/look/tree.ts')).tree,
  },
  {
    name: 'log',
    group: 'Look',
    usage: '[ID] [-f] [--json]',
    summary: 'print what happened, event by event',
    about: ['With -f it also streams the text of running models, from whichever process they run in.'],
    options: [{ name: 'follow', short: 'f', text: 'continue until the run ends' }, JSON_LINES],
    examples: [
      ['legate log 1f0c9a2e', 'the whole story so far'],
      ['legate log -f 1f0c9a2e', 'follow a run of another process'],
      ['legate log 1f0c9a2e --json | jq -r .type | sort | uniq -c', 'count its events'],
    ],
    takes: [0, 1],
    completes: 'id',
    load: async () => (await import('./commands/look/tree.ts')).log,
  },
  {
    name: 'transcript',
    group: 'Look',
    usage: '[ID] [--turns N] [--before RUN] [--json]',
    summary: 'print the latest rounds of a conversation',
    options: [
      { name: 'turns', value: 'N', text: 'how many rounds (20)' },
      { name: 'before', value: 'RUN', text: 'the rounds before this one' },
      JSON_LINES,
    ],
    examples: [
      ['legate transcript 1f0c9a2e', 'the conversation of this run'],
      ['legate transcript 1f0c9a2e --turns 5 --before 77ab01cd', 'further back'],
    ],
    takes: [0, 1],
    completes: 'id',
    load: async () => (await import('./commands/look/show.ts')).transcript,
  },
  ...PROOF_COMMANDS,
  ...STORE_COMMANDS,
  ...CHANGE_COMMANDS,
  {
    name: 'cancel',
    group: 'Change',
    usage: 'ID [--reason TEXT] [--timeout SECONDS]',
    summary: 'stop a run and everything it started',
    about: [
      'Works from any process, even if the process of the run is gone: the request is a row. Everything said and done ' +
        'so far is kept.',
    ],
    options: [REASON, { name: 'timeout', value: 'SECONDS', text: 'how long to wait until all has stopped (20)' }],
    examples: [['legate cancel 1f0c9a2e --reason "wrong topic"', 'stop it and say why']],
    takes: [1, 1],
    completes: 'id',
    load: async () => (await import('./commands/change/resume.ts')).cancel,
  },
  {
    name: 'approvals',
    group: 'Answer',
    usage: '[ID] [--json]',
    summary: 'list what waits for a person, in all runs',
    options: [JSON_LINES],
    examples: [
      ['legate approvals', 'who asks, for what, by which rule, since when, and how to answer'],
      ['legate approvals 5ab9c1d0', 'one request'],
    ],
    takes: [0, 1],
    load: async () => (await import('./commands/look/approvals.ts')).approvals,
  },
  {
    name: 'approve',
    group: 'Answer',
    usage: 'ID --seen DIGEST [--edit JSON] [--always]',
    summary: 'allow a call that waits for a person',
    options: [
      SEEN_OPTION,
      { name: 'edit', value: 'JSON', text: 'call it with these arguments instead' },
      { name: 'always', text: 'also allow later calls like it in this conversation' },
    ],
    examples: [
      ['legate approve 5ab9c1d0 --seen 2b7e...', 'exactly the request that legate approvals showed'],
      ['legate approve 5ab9c1d0 --seen 2b7e... --always', 'and do not ask again in this conversation'],
      [`legate approve 5ab9c1d0 --seen 2b7e... --edit '{"to":"staging"}'`, 'with other arguments'],
    ],
    takes: [1, 1],
    completes: 'id',
    load: async () => (await import('./commands/change/answer.ts')).approve,
  },
  {
    name: 'deny',
    group: 'Answer',
    usage: 'ID [--reason TEXT] [--seen DIGEST]',
    summary: 'refuse a call that waits for a person',
    options: [REASON, SEEN_OPTION],
    examples: [['legate deny 5ab9c1d0 --reason "not on a Friday"', 'the agent reads the reason and continues']],
    takes: [1, 1],
    completes: 'id',
    load: async () => (await import('./commands/change/answer.ts')).deny,
  },
  {
    name: 'answer',
    group: 'Answer',
    usage: 'ID TEXT [--seen DIGEST]',
    summary: 'answer a question that an agent asked a person, or give the result of a call that you executed',
    options: [SEEN_OPTION],
    examples: [
      ['legate answer 5ab9c1d0 "Use port 8080."', 'the id of the question, or of its run'],
      [`legate answer 5ab9c1d0 --seen 2b7e... '{"size":"M"}'`, 'the result of a call, as it was shown'],
    ],
    takes: [2, 2],
    completes: 'id',
    load: async () => (await import('./commands/change/answer.ts')).reply,
  },
  ...PEOPLE_COMMANDS,
  {
    name: 'resume',
    group: 'Run',
    usage: '[ID] [--module FILE] [--yes] [--json]',
    summary: 'continue unfinished runs, as a worker',
    about: [
      'The store keeps the whole definition of runs of legate run and chat: without a module, resume continues those of ' +
        'this folder, or the ID you name. For runs of your own program FILE is an ES module that exports the agents: each by name, or as its default export an agent, a list of agents, ' +
        'or the options of createRuntime({ agents, model, ... }).',
      'The first Ctrl-C asks the runs to stop and keeps what they have; the second ends at once. A plain kill (SIGTERM) ' +
        'leaves them unfinished for the next worker. A cancelled run that you name continues in its conversation, as ' +
        'one more run.',
      'Exits with 0 if all runs completed, 1 if one did not, 3 if one waits for a person, 130 after Ctrl-C.',
    ],
    options: [MODULE, YES, JSON_LINES],
    examples: [
      ['legate resume', 'unfinished runs of legate run in this folder'],
      ['legate resume --module ./agents.js', 'all unfinished runs of these agents'],
      ['legate resume 1f0c9a2e -m ./agents.js', 'one run only'],
    ],
    takes: [0, 1],
    completes: 'id',
    load: async () => (await import('./commands/change/resume.ts')).resume,
  },
  ...SERVER_COMMANDS,
  {
    name: 'validate',
    group: 'Run',
    usage: 'FILE... [--lenient] [--json]',
    summary: 'check recipes and agent files, line by line',
    about: [
      'Checks recipes of goose and Aster, and the agent files of every program that legate convert knows. A module is ' +
        'loaded, and its agents are listed.',
    ],
    options: [{ name: 'lenient', text: 'warn instead of refusing a recipe that is still usable' }, JSON_LINES],
    examples: [
      ['legate validate recipe.yaml', 'errors with file, line and what to do; exit code 1 if any'],
      ['legate validate .claude/agents/*.md', 'all agents of a project'],
    ],
    takes: [1, Number.MAX_SAFE_INTEGER],
    completes: 'file',
    load: async () => (await import('./commands/validate.ts')).validate,
  },
  {
    name: 'explain',
    group: 'Run',
    usage: 'FILE [TEXT] [--agent NAME] [--param KEY=VALUE] [--model MODEL] [--compat aster] [--json]',
    summary: 'show what a run would start with, without calling a model',
    about: [
      'Shows the exact system prompt and first message, the tools, the model, what it may do, and the most it can cost.',
      'For a module (.js, .mjs; .ts from Node 22.18 on) it shows the exported agents: model, tools and the decision on each, ' +
        'subagents, servers, grant. It loads the module and runs no agent.',
    ],
    options: [PARAM, MODEL, COMPAT, AGENT, NO_PROJECT, JSON_LINES],
    examples: [
      ['legate explain recipe.yaml -p topic=QUIC', 'read it before you run it'],
      ['legate explain reviewer --json | jq -r .system', 'only its system prompt'],
      ['legate explain agents.mjs --agent poet', 'an agent written in code'],
    ],
    takes: [1, 2],
    completes: 'file',
    load: async () => (await import('./commands/explain.ts')).explain,
  },
  {
    name: 'doctor',
    group: 'Run',
    usage: '[--store PATH] [--all] [--json]',
    summary: 'list every recipe and agent file found here, with its problems; check a store',
    about: [
      'Searches this folder, those above it up to the root of the repository, and your home folder, the nearest ' +
        'first. Runs nothing. Exits with 1 if a file is broken.',
      'With --store it also opens that store, changes nothing in it, and says what it is and who works on it. Exits with 1 if the ' +
        'store cannot be opened; legate audit checks what is in it.',
    ],
    options: [{ name: 'all', short: 'a', text: 'also show notes that leave nothing out' }, JSON_LINES],
    examples: [
      ['legate doctor', 'each file, its place, what shadows it, and its problems'],
      ['legate doctor --store postgres://db/app', 'and whether that store answers'],
    ],
    takes: [0, 0],
    load: async () => (await import('./commands/doctor.ts')).doctor,
  },
  {
    name: 'convert',
    group: 'Run',
    usage: 'FILE --to DIALECT [--lossy]',
    summary: 'convert a recipe or agent file for another program',
    about: [
      'DIALECT is the name of a program, such as claude or codex; without --to you see all names. If the other ' +
        'program cannot express the whole file, nothing is written and the error lists the losses. --lossy writes the rest.',
    ],
    options: [
      { name: 'to', value: 'DIALECT', text: 'the program to convert for' },
      { name: 'lossy', text: 'write what the program can express, with a warning for each loss' },
    ],
    examples: [['legate convert .claude/agents/reviewer.md --to codex > reviewer.toml', 'the same agent for Codex']],
    takes: [1, 1],
    completes: 'file',
    load: async () => (await import('./commands/validate.ts')).convert,
  },
  {
    name: 'completion',
    group: 'Help',
    usage: 'bash|zsh|fish',
    summary: 'print a script that completes commands, options and ids',
    options: [],
    examples: [
      ['legate completion bash >> ~/.bashrc', 'bash'],
      ['legate completion zsh > "$fpath[1]/_legate"', 'zsh'],
      ['legate completion fish > ~/.config/fish/completions/legate.fish', 'fish'],
    ],
    takes: [1, 1],
    completes: ['bash', 'zsh', 'fish'],
    load: async () => (await import('./commands/completion.ts')).completion,
  },
  {
    name: 'help',
    group: 'Help',
    usage: '[COMMAND]',
    summary: 'explain a command, with examples',
    options: [],
    examples: [['legate help resume', 'the same as legate resume --help']],
    takes: [0, 1],
    completes: 'command',
    load: async () => (await import('./commands/help.ts')).help,
  },
]
