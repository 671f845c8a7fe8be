import type { CliCommand, Option } from './command/command.ts'

const JSON_LINES: Option = { name: 'json', text: 'one JSON object a line, for programs' }

const MODULE: Option = {
  name: 'module',
  short: 'm',
  value: 'FILE',
  text: 'a module that exports agents, with options of createRuntime',
}

export const ALLOW: Option = {
  name: 'allow',
  value: 'RULE',
  isList: true,
  text: "what runs may do without asking: 'exec:npm test'; may be repeated",
}
export const DENY: Option = {
  name: 'deny',
  value: 'RULE',
  isList: true,
  text: "what runs may not do: 'net:*'; may be repeated",
}

const FILES: Option = {
  name: 'files',
  value: 'WHOSE',
  text: 'files of agents: own gives each owner its own, shared gives all of them this folder',
}

const TRUST: Option = {
  name: 'trust-programs',
  text: 'others than you may start agents that start programs, which can do what you can',
}

const QUEUE: Option = {
  name: 'queue',
  value: 'QUEUE',
  text: 'DBOS brings work through this queue: needs PostgreSQL',
}

const NO_PROJECT: Option = {
  name: 'no-project-files',
  text: 'do not tell agents of files what AGENTS.md, CLAUDE.md and their like say',
}

/** Commands for a server and its tokens, and for processes that only work. */
export const SERVER_COMMANDS: readonly CliCommand[] = [
  {
    name: 'serve',
    group: 'Serve',
    usage:
      '[FILE...] [--module FILE] [--files WHOSE] [--allow RULE] [--deny RULE] [--trust-programs] [--port N] [--host ADDRESS] [--socket PATH] [--workers N] [--verbose]',
    summary: 'serve agents over HTTP, and work on their runs',
    about: [
      'Every FILE is a recipe, an agent file, a name that legate doctor lists, or a module. Callers start these agents by name; ' +
        'the API is the same for pages, other programs and other languages.',
      'Prints one line: the address with the token of this machine, the same at every start. It listens on 127.0.0.1 only. ' +
        'Another --host needs a token (legate token add) or --oidc-issuer, and --tls-cert or --behind-proxy.',
      'Several servers and workers may share one store. --workers 0 only answers requests: another process does the work.',
      'Agents that work with files or programs can be started by others than you once --files says whose files those have. ' +
        'Give workers of the store the same --files, in the same folder.',
      'It does not start where a token of others, or a login, reaches an agent that starts programs: a shell, an MCP server, a check. ' +
        'A program can read the token of this machine. --trust-programs says that you trust all of them like yourself.',
      'Whatever a file says to run without asking is asked for here, unless --allow RULE names it. For agents of modules --allow RULE ' +
        'answers what their grants ask for. --deny RULE takes away from all of them.',
      'Ctrl-C or SIGTERM ends it in order: streams are told to come back elsewhere, running steps get a few seconds, and what ' +
        'is not done goes back to the store. A second signal ends it at once.',
    ],
    options: [
      MODULE,
      {
        name: 'model',
        value: 'MODEL',
        text: 'provider/model: instead of those in the files, and for agents of modules without one',
      },
      NO_PROJECT,
      FILES,
      ALLOW,
      DENY,
      TRUST,
      { name: 'memory', value: 'WHOSE', text: 'the extension memory of files: own (each owner) or shared' },
      { name: 'port', value: 'N', text: 'the port (4747); 0 for any that is free' },
      { name: 'host', value: 'ADDRESS', text: 'the address to listen on (127.0.0.1)' },
      { name: 'socket', value: 'PATH', text: 'a Unix socket instead: who can open the file needs no token' },
      { name: 'workers', value: 'N', text: 'how many steps run at the same time (256); 0 for none' },
      QUEUE,
      { name: 'allow-host', value: 'NAME', isList: true, text: 'a name that the server also goes by; may be repeated' },
      { name: 'allow-origin', value: 'URL', isList: true, text: 'a web page that may use it; may be repeated' },
      { name: 'oidc-issuer', value: 'URL', text: 'takes tokens of this OpenID Connect provider' },
      { name: 'oidc-audience', value: 'NAME', text: 'the audience that such tokens must name' },
      { name: 'behind-proxy', text: 'a proxy before it ends TLS and says who asks' },
      { name: 'tls-cert', value: 'FILE', text: 'the certificate, as PEM: the server then speaks https' },
      { name: 'tls-key', value: 'FILE', text: 'its key, as PEM' },
      { name: 'no-ui', text: 'serve the API only, without the inspector' },
      { name: 'verbose', text: 'a line on stderr for each request' },
    ],
    examples: [
      ['legate serve reviewer.md agents.mjs', 'two files, on 127.0.0.1:4747'],
      ['legate serve --socket ./legate.sock', 'for this user only, without a token'],
      ['legate serve -m agents.mjs --host 0.0.0.0 --behind-proxy --allow-host a.com', 'behind a proxy of that name'],
    ],
    takes: [0, Number.MAX_SAFE_INTEGER],
    completes: 'file',
    load: async () => (await import('./commands/serve.ts')).serve,
  },
  {
    name: 'mcp',
    group: 'Serve',
    usage: '[FILE...] [--module FILE] [--allow RULE] [--deny RULE] [--approve] [--manage]',
    summary: 'serve agents as MCP tools over stdin and stdout, and work on their runs',
    about: [
      'Every FILE is a recipe, an agent file, a name that legate doctor lists, or a module. Each agent is a tool with its own ' +
        'schemas; a recipe with a prompt is a prompt too, and one that needs values is a prompt only.',
      'An MCP client starts this command by itself. Runs are recorded: a long call goes on as a task, or under its run_id, and ' +
        'after a restart too.',
      'The client cannot allow what agents ask a person for: use legate approvals. With --approve it may: its person is asked with ' +
        'a form. Where the client has no forms, this lets the calling model approve (the scope approve:model).',
      'Whatever a file says to run without asking is asked for here, unless --allow RULE names it. For agents of modules --allow RULE ' +
        'answers what their grants ask for. --deny RULE takes away from all of them.',
    ],
    options: [
      MODULE,
      {
        name: 'model',
        value: 'MODEL',
        text: 'provider/model: instead of those in the files, and for agents of modules without one',
      },
      NO_PROJECT,
      ALLOW,
      DENY,
      { name: 'approve', text: 'the client may allow requests: its person by a form, else the calling model' },
      { name: 'manage', text: 'offer run_get, run_wait, run_cancel also to clients with Tasks' },
    ],
    examples: [
      ['legate mcp ~/agents/reviewer.md', 'one agent, for the configuration of a client'],
      ['legate mcp -m agents.mjs --approve', 'the agents of a module; the client asks its person'],
    ],
    takes: [0, Number.MAX_SAFE_INTEGER],
    completes: 'file',
    load: async () => (await import('./commands/mcp.ts')).mcp,
  },
  {
    name: 'acp',
    group: 'Serve',
    usage: '[FILE] [--module FILE] [--agent NAME] [--allow RULE] [--deny RULE]',
    summary: 'be an agent in an editor that speaks ACP, over stdin and stdout',
    about: [
      'FILE is a recipe, an agent file, a name that legate doctor lists, or a module. An editor such as Zed starts this command by ' +
        'itself, shows what the agent says and does, and asks its person what the agent asks for.',
      'A session is a conversation of the store: it can be loaded again after the editor or this command was killed, and what ' +
        'waits for a person is asked again.',
      'Name the file by its whole path: an editor starts this command in the folder that it has open, and somebody else may have ' +
        'filled that. Whatever the file says to run without asking is asked for here, unless --allow RULE names it. For an agent of a ' +
        'module --allow RULE answers what its grant asks for.',
    ],
    options: [
      MODULE,
      { name: 'agent', value: 'NAME', text: 'which agent of the module, if it exports several' },
      {
        name: 'model',
        value: 'MODEL',
        text: 'provider/model: instead of the one in the file, or for agents of a module without one',
      },
      NO_PROJECT,
      ALLOW,
      DENY,
    ],
    examples: [
      ['legate acp ~/agents/reviewer.md', 'for the settings of an editor'],
      ['legate acp -m agents.mjs --agent lead', 'an agent of a module'],
    ],
    takes: [0, 1],
    completes: 'file',
    load: async () => (await import('./commands/acp.ts')).acp,
  },
  {
    name: 'worker',
    group: 'Serve',
    usage:
      '[FILE...] [--module FILE] [--files WHOSE] [--allow RULE] [--deny RULE] [--agents LIST] [--workers N] [--queue QUEUE] [--on-changed WHAT]',
    summary: 'only work: run the steps of a store until a signal ends it',
    about: [
      'A worker takes steps whose code it has, of runs that any process started. Start as many as you need, with the same ' +
        'agents or with others: a step goes to a worker that has its code. legate why says which code is missing where.',
      'SIGTERM or Ctrl-C drains it: it takes nothing more, running steps get a few seconds, and what is not done goes back to ' +
        'the store for others. A second signal ends it at once.',
      'If an agent was defined differently when a run began, the worker goes on with its own definition. With --on-changed ' +
        'wait it leaves such runs to workers that still have the old one, so that you can roll out a new one beside it.',
      'Runs of recipe and agent files need no code. A worker takes those that were started in its folder. For agents ' +
        'of modules give all of them the same --allow and --deny: the process that runs a step reads them.',
      'With --queue and a store on PostgreSQL, DBOS (npm install @dbos-inc/dbos-sdk@~5.3) wakes one worker where there is work. Give ' +
        'the same queue to legate serve and to your programs: what a process without it leaves is found by looking.',
    ],
    options: [
      MODULE,
      {
        name: 'model',
        value: 'MODEL',
        text: 'provider/model: instead of those in the files, and for agents of modules without one',
      },
      NO_PROJECT,
      FILES,
      ALLOW,
      DENY,
      { name: 'agents', value: 'LIST', text: 'only these of the agents, with all below them: lead,writer' },
      { name: 'workers', value: 'N', text: 'how many steps run at the same time (256)' },
      QUEUE,
      {
        name: 'on-changed',
        value: 'WHAT',
        text: 'runs of another definition of an agent: continue (the default) or wait',
      },
    ],
    examples: [
      ['legate worker -m agents.mjs --store runs.db', 'one more process for this store'],
      ['legate worker -m agents.mjs --agents writer', 'for one agent only'],
      ['legate worker -m agents.mjs --store postgres://db/app --queue agents', 'woken by DBOS'],
      ['legate worker -m agents.mjs --on-changed wait', 'beside workers with another version of the code'],
    ],
    takes: [0, Number.MAX_SAFE_INTEGER],
    completes: 'file',
    load: async () => (await import('./commands/worker.ts')).worker,
  },
  {
    name: 'token',
    group: 'Serve',
    usage: 'add NAME [--scopes LIST] [--agents LIST] [--expires TIME] ... | list | revoke ID [--cancel] [--json]',
    summary: 'make, list and revoke the tokens of a server',
    about: [
      'NAME is who the token stands for: the owner of what it starts, and the name under what it says. The text of a token is ' +
        'printed once, on stdout; the store keeps only its hash.',
      'Scopes are start, read, cancel, approve, approve:always, approve:model, history, delete, export, audit and admin; the usual ' +
        'ones are start, read and cancel. None implies another. Give approve to people, and approve:model to nobody unless the model ' +
        'that calls over MCP may allow what it asks for.',
      'Revoking a token also revokes those made within it. Its streams end within 5 seconds; its runs go on, unless --cancel.',
    ],
    options: [
      { name: 'scopes', value: 'LIST', text: 'what it may do (start,read,cancel)' },
      { name: 'agents', value: 'LIST', isList: true, text: "the agents it may start and see: 'review*'" },
      { name: 'grant-deny', value: 'RULE', isList: true, text: "what its runs may not do: 'exec:*'; may be repeated" },
      { name: 'grant', value: 'FILE', text: 'a JSON file with use, ask, free and deny, which narrows its runs' },
      { name: 'budget', value: 'LIMITS', text: 'limits of each run: usd=1,tokens=200000' },
      { name: 'per-day', value: 'LIMITS', text: 'limits of all its runs of a day: usd=5,runs=100,bytes=50000000' },
      { name: 'sees', value: 'WHOSE', text: 'whose runs it sees: own, all (needs admin or audit), or names' },
      { name: 'expires', value: 'TIME', text: 'when it ends: 12h, 30d, 8w (never)' },
      { name: 'within', value: 'ID', text: 'it may no more than this token, and goes with it' },
      { name: 'cancel', text: 'with revoke: also cancel the open runs of its owner' },
      JSON_LINES,
    ],
    examples: [
      ["legate token add ann --agents 'review*' --per-day usd=5 --expires 30d", 'for a person or a service'],
      ['legate token add watcher --scopes read,audit --sees all', 'one that only looks'],
      ['legate token list', 'their ids, owners, ends and last use'],
      ['legate token revoke 4f1c9a2e --cancel', 'and stop what it started'],
    ],
    takes: [1, 2],
    completes: ['add', 'list', 'revoke'],
    load: async () => (await import('./commands/token.ts')).token,
  },
  {
    name: 'open',
    group: 'Serve',
    usage: '[ID] [--print]',
    summary: 'open the inspector of this store in your browser, at one run if you name it',
    about: [
      'Finds a server of this store that legate serve started on this machine, and prints its address, which holds the token ' +
        'of this machine. In a terminal it also opens the address with $BROWSER or the browser of the system.',
    ],
    options: [{ name: 'print', text: 'print the address, and open nothing' }],
    examples: [
      ['legate open 1f0c9a2e', 'that run, in your browser'],
      ['LEGATE_SERVER=$(legate open) legate ps', 'the same as legate ps, through the server'],
    ],
    takes: [0, 1],
    completes: 'id',
    load: async () => (await import('./commands/open.ts')).open,
  },
]
