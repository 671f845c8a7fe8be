import type { CliCommand, Option } from './command/command.ts'
import { CHANGE_COMMANDS, PROOF_COMMANDS } from './store-commands.ts'

const JSON_LINES: Option = { name: 'json', text: 'one JSON object a line, for programs' }
const REASON: Option = { name: 'reason', value: 'TEXT', text: 'what is recorded, and told to the agent' }
const SEEN_OPTION: Option = { name: 'seen', value: 'DIGEST', text: 'only what was shown with this digest' }

const PARAM: Option = {
  name: 'param',
  short: 'p',
  value: 'KEY=VALUE',
  isList: true,
  text: 'a parameter of the file; may be repeated',
}
const MODEL: Option = { name: 'model', value: 'MODEL', text: 'provider/model, instead of what the file names' }

const COMPAT: Option = {
  name: 'compat',
  value: 'aster',
  text: 'offer subagents as aster does: not to gemini models, and only beside other tools',
}

const MODULE: Option = { name: 'module', short: 'm', value: 'FILE', text: 'where your agents are' }
const AGENT: Option = { name: 'agent', value: 'NAME', text: 'which agent of a module, where it exports several' }

const YES: Option = { name: 'yes', short: 'y', text: 'allow whatever it asks for' }

/** Every command in the order of the help. A command's code is loaded when it runs. */
export const COMMANDS: readonly CliCommand[] = [
  {
    name: 'demo',
    usage: '',
    summary: 'one agent, three subagents, kill -9 in the middle, and nothing done twice',
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
    usage: 'FILE [TEXT] [--agent NAME] [--param KEY=VALUE] [--model MODEL] [--compat aster] [--yes] [--json]',
    summary: 'do what a recipe, an agent file or an agent in code says, and print the answer',
    about: [
      'FILE is a path, or the name of a definition that legate doctor finds. TEXT is what it is asked, instead of its own ' +
        'prompt; - reads it from stdin.',
      'FILE may also be a module (.js, .mjs; .ts from Node 22.18 on) that exports agents: it does what its code allows. ' +
        '--module FILE is the same.',
      'A recipe or agent file may read below the current folder; before it writes, deletes, runs a program or uses the network it asks. In a ' +
        'terminal you are asked here, also for parameters that have no value; elsewhere nothing is asked: what needs a ' +
        'person is left waiting, with exit code 3 and the command that answers.',
      'Where the output is no terminal it is the answer alone; what happens is told on stderr.',
    ],
    options: [PARAM, MODEL, COMPAT, MODULE, AGENT, YES, JSON_LINES],
    examples: [
      ['legate run recipe.yaml --param topic=QUIC', 'a recipe'],
      ['legate run .claude/agents/reviewer.md "Review src/"', 'an agent file'],
      ['legate run agents.mjs --agent poet "Write about roses."', 'an agent written in code'],
      ['legate run reviewer - < notes.txt > review.md', 'by name, its input and its answer in files'],
    ],
    takes: [0, 2],
    completes: 'file',
    load: async () => (await import('./commands/run.ts')).run,
  },
  {
    name: 'chat',
    usage: '[FILE] [--agent NAME] [--param KEY=VALUE] [--model MODEL] [--compat aster] [--continue ID]',
    summary: 'talk with an agent; what is said is kept',
    about: [
      'FILE is a recipe, an agent file, a name that legate doctor finds, or a module; without one it is an assistant. A message that ' +
        'begins with @name is handed to the definition of that name, as a subagent.',
      'Ctrl-C stops the answer, once more leaves; Ctrl-D leaves. Where the input is no terminal each line is a message.',
    ],
    options: [
      PARAM,
      MODEL,
      COMPAT,
      MODULE,
      AGENT,
      { name: 'continue', short: 'c', value: 'ID', text: 'go on with this conversation' },
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
    usage: '[FILE]',
    summary: 'write a small recipe that works, to begin with',
    about: ['FILE is recipe.yaml where none is named. A file that is there is left as it is.'],
    options: [],
    examples: [['legate init && legate run recipe.yaml -p topic=QUIC', 'the first run']],
    takes: [0, 1],
    completes: 'file',
    load: async () => (await import('./commands/init.ts')).init,
  },
  {
    name: 'ps',
    usage: '[--all] [-q] [--json]',
    summary: 'runs that go on, and the last that ended',
    options: [
      { name: 'all', short: 'a', text: 'every run of the store' },
      { name: 'quiet', short: 'q', text: 'short ids only' },
      JSON_LINES,
    ],
    examples: [
      ['legate ps', 'what is going on, and what it waits for'],
      ['legate ps --store ./runs.db', 'the runs of another store'],
      ['legate ps --all --json | jq -r .agent', 'every run, for programs'],
    ],
    takes: [0, 0],
    load: async () => (await import('./commands/look/ps.ts')).ps,
  },
  {
    name: 'show',
    usage: '[ID] [--nodes | --graph [--dot]] [--json]',
    summary: 'one run: input, outcome, answer, usage, subagents',
    options: [
      { name: 'nodes', text: 'its nodes instead, one a line, with their ids' },
      { name: 'graph', text: 'a picture of all its nodes and edges instead, for Mermaid' },
      { name: 'dot', text: 'the picture for Graphviz' },
      JSON_LINES,
    ],
    examples: [
      ['legate show 1f0c9a2e', 'any ending of an id will do, from 4 characters on'],
      ['legate show 9a2e --json | jq .outcome', 'how it ended, for programs'],
      ['legate show 9a2e --graph --dot | dot -Tsvg > run.svg', 'every node of it and of its subagents, drawn'],
    ],
    takes: [0, 1],
    completes: 'id',
    load: async () => (await import('./commands/look/show.ts')).show,
  },
  {
    name: 'tree',
    usage: '[ID] [-f] [--json]',
    summary: 'who delegated to whom, how it stands, and what it waits for',
    options: [{ name: 'follow', short: 'f', text: 'keep it up to date until the run ends' }, JSON_LINES],
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
    usage: '[ID] [-f] [--json]',
    summary: 'what happened, event by event',
    about: ['With -f also what models are saying right now, whichever process they talk to.'],
    options: [{ name: 'follow', short: 'f', text: 'go on until the run ends' }, JSON_LINES],
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
    usage: '[ID] [--turns N] [--before RUN] [--json]',
    summary: 'what was said in a conversation, the latest rounds',
    options: [
      { name: 'turns', value: 'N', text: 'how many rounds (20)' },
      { name: 'before', value: 'RUN', text: 'the rounds before this one' },
      JSON_LINES,
    ],
    examples: [
      ['legate transcript 1f0c9a2e', 'of the conversation that this run is of'],
      ['legate transcript 1f0c9a2e --turns 5 --before 77ab01cd', 'further back'],
    ],
    takes: [0, 1],
    completes: 'id',
    load: async () => (await import('./commands/look/show.ts')).transcript,
  },
  ...PROOF_COMMANDS,
  ...CHANGE_COMMANDS,
  {
    name: 'cancel',
    usage: 'ID [--reason TEXT] [--timeout SECONDS]',
    summary: 'stop a run and everything it started',
    about: [
      'The request is a row: it works from any process, and also when the process of the run is gone. What was said and ' +
        'done so far is kept.',
    ],
    options: [REASON, { name: 'timeout', value: 'SECONDS', text: 'how long to wait until all has stopped (20)' }],
    examples: [['legate cancel 1f0c9a2e --reason "wrong topic"', 'stop it and say why']],
    takes: [1, 1],
    completes: 'id',
    load: async () => (await import('./commands/change/resume.ts')).cancel,
  },
  {
    name: 'approvals',
    usage: '[--json]',
    summary: 'what waits for a person, in all runs',
    options: [JSON_LINES],
    examples: [['legate approvals', 'who asks, for what, by which rule, since when, and how to answer']],
    takes: [0, 0],
    load: async () => (await import('./commands/look/approvals.ts')).approvals,
  },
  {
    name: 'approve',
    usage: 'ID [--seen DIGEST] [--edit JSON] [--always]',
    summary: 'allow a call that waits for a person',
    options: [
      SEEN_OPTION,
      { name: 'edit', value: 'JSON', text: 'with these arguments instead' },
      { name: 'always', text: 'also the next ones like it in this conversation' },
    ],
    examples: [
      ['legate approve 5ab9c1d0 --seen 2b7e151628ae', 'what legate approvals has shown, and nothing else'],
      ['legate approve 5ab9c1d0', 'the id of the call: the first thing that it asks for'],
      ['legate approve 5ab9c1d0 --always', 'and do not ask again in this conversation'],
      [`legate approve 5ab9c1d0 --edit '{"to":"staging"}'`, 'but with other arguments'],
    ],
    takes: [1, 1],
    completes: 'id',
    load: async () => (await import('./commands/change/answer.ts')).approve,
  },
  {
    name: 'deny',
    usage: 'ID [--reason TEXT] [--seen DIGEST]',
    summary: 'refuse a call that waits for a person',
    options: [REASON, SEEN_OPTION],
    examples: [['legate deny 5ab9c1d0 --reason "not on a Friday"', 'the agent reads the reason and goes on']],
    takes: [1, 1],
    completes: 'id',
    load: async () => (await import('./commands/change/answer.ts')).deny,
  },
  {
    name: 'answer',
    usage: 'ID TEXT',
    summary: 'answer what an agent has asked a person',
    options: [],
    examples: [['legate answer 5ab9c1d0 "Use port 8080."', 'the id of the question, or of its run']],
    takes: [2, 2],
    completes: 'id',
    load: async () => (await import('./commands/change/answer.ts')).reply,
  },
  {
    name: 'resume',
    usage: '[ID] [--module FILE] [--yes] [--json]',
    summary: 'go on with what is unfinished, as a worker',
    about: [
      'Runs of legate run and chat are kept with all of their definition: without a module it goes on with those of this ' +
        'folder, or with the ID that is named. For runs of your own program FILE is an ES module that exports the agents: each by name, or as its default export an agent, a list of agents, ' +
        'or the options of createRuntime({ agents, model, ... }).',
      'Ctrl-C once asks the runs it drives to stop and keeps what they have; twice ends at once. A plain kill (SIGTERM) ' +
        'hands them back unfinished, for the next worker. An ID whose run was cancelled is taken up again in its ' +
        'conversation, as one more run.',
      'Exits with 0 if all completed, 1 if one ended otherwise, 3 if one waits for a person, 130 after Ctrl-C.',
    ],
    options: [MODULE, YES, JSON_LINES],
    examples: [
      ['legate resume', 'what legate run has left unfinished in this folder'],
      ['legate resume --module ./agents.js', 'everything unfinished that these agents can do'],
      ['legate resume 1f0c9a2e -m ./agents.js', 'one run only'],
    ],
    takes: [0, 1],
    completes: 'id',
    load: async () => (await import('./commands/change/resume.ts')).resume,
  },
  {
    name: 'validate',
    usage: 'FILE... [--lenient] [--json]',
    summary: 'what is wrong with recipes and agent files, line by line',
    about: [
      'Recipes of goose and Aster, and agent files of Claude Code, opencode, Gemini, Codex, Copilot, Cursor and goose. A module is ' +
        'loaded, and its agents are named.',
    ],
    options: [{ name: 'lenient', text: 'warn where a recipe would be refused and could still be used' }, JSON_LINES],
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
    usage: 'FILE [TEXT] [--agent NAME] [--param KEY=VALUE] [--model MODEL] [--compat aster] [--json]',
    summary: 'what a run of a file begins with, without calling a model',
    about: [
      'The exact system prompt and first message, the tools, the model, what it may do, and what it can cost at most.',
      'Of a module (.js, .mjs; .ts from Node 22.18 on) the agents that it exports: model, tools and what is decided of each, ' +
        'subagents, servers, grant. The module is loaded; nothing of it is run.',
    ],
    options: [PARAM, MODEL, COMPAT, AGENT, JSON_LINES],
    examples: [
      ['legate explain recipe.yaml -p topic=QUIC', 'read it before you run it'],
      ['legate explain reviewer --json | jq -r .system', 'its system prompt alone'],
      ['legate explain agents.mjs --agent poet', 'an agent written in code'],
    ],
    takes: [1, 2],
    completes: 'file',
    load: async () => (await import('./commands/explain.ts')).explain,
  },
  {
    name: 'doctor',
    usage: '[--all] [--json]',
    summary: 'every recipe and agent file found here, and what is made of it',
    about: [
      'Looks in this folder, in those above it up to the root of the repository, and in your home folder, the nearer ' +
        'first. Nothing is run. Exit code 1 if a file is broken.',
    ],
    options: [{ name: 'all', short: 'a', text: 'also what was only ignored or kept' }, JSON_LINES],
    examples: [['legate doctor', 'what is found, from where, what shadows what, what is wrong']],
    takes: [0, 0],
    load: async () => (await import('./commands/doctor.ts')).doctor,
  },
  {
    name: 'convert',
    usage: 'FILE --to DIALECT [--lossy]',
    summary: 'a recipe or agent file in the words of another program',
    about: [
      'DIALECT is the name of a program, such as claude or codex; without --to you see all names. A file that the other ' +
        'program cannot say in full is not written: the error lists what would be lost. --lossy writes the rest.',
    ],
    options: [
      { name: 'to', value: 'DIALECT', text: 'whose words' },
      { name: 'lossy', text: 'write what can be said, with a warning for each loss' },
    ],
    examples: [['legate convert .claude/agents/reviewer.md --to codex > reviewer.toml', 'the same agent for Codex']],
    takes: [1, 1],
    completes: 'file',
    load: async () => (await import('./commands/validate.ts')).convert,
  },
  {
    name: 'completion',
    usage: 'bash|zsh|fish',
    summary: 'a script that completes commands, options and ids',
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
    usage: '[COMMAND]',
    summary: 'how to use a command, with examples',
    options: [],
    examples: [['legate help resume', 'the same as legate resume --help']],
    takes: [0, 1],
    completes: 'command',
    load: async () => (await import('./commands/help.ts')).help,
  },
]
