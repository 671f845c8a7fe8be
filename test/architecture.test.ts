import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import ts from 'typescript'
import { describe, expect, test } from 'vitest'
import manifest from '../package.json' with { type: 'json' }
import { figure } from './crash/support/figure.ts'

/** The rooms of `src/core`, from the ground up: a room may import the rooms before it in this list, and itself. */
const rooms = [
  'base',
  'graph',
  'grant',
  'rules',
  'store',
  'engine',
  'audit',
  'fields',
  'prompt',
  'model',
  'files',
  'tool',
  'tools',
  'conversation',
  'agent',
  'delegation',
  'extension',
  'operations',
  'runtime',
]
/** What is around the core. None of it is imported by the core. */
const around = ['stores', 'recipes', 'client', 'protocols', 'server', 'cli', 'testing', 'doors', 'index']
/** Loads what builds agents from data, with what runs nodes: any process that has the store goes on with agents of files. */
const inlineLoader = { from: 'src/core/runtime/lazy.ts', to: 'src/recipes/run/inline-core.ts' }
/** What a user can import, and so all that the command line may. */
const doors = Object.values(manifest.exports).flatMap((door) =>
  typeof door === 'string' ? [] : [door.default.replace('./dist/', 'src/').replace(/js$/, 'ts')],
)
/** Rooms that may import only these modules of Node. */
const nodeModules: Readonly<Record<string, readonly string[]>> = {
  base: ['node:crypto'],
  graph: [],
  grant: [],
  rules: [],
  fields: [],
  prompt: [],
  client: [],
}
/** Gives files and the machine to those rooms that may have them. */
const system = 'src/core/base/node-system.ts'
/** What the machine knows: whose files these are, and where the user’s are. The command line may ask, too. */
const isOfMachine = (file: string) => file.startsWith('src/core/base/system/')
/** Rooms that may import less than all that is before them. */
const narrowRooms: Readonly<Record<string, readonly string[]>> = { fields: ['base'] }
/** Everyone who asks `grant/decide`. A new line here is a new place that enforces authority: argue it in review. */
const deciders = [
  'src/core/files/access.ts',
  'src/core/grant/decide.ts',
  'src/doors/grant.ts',
  'src/core/grant/lint.ts',
  // Whether a principal may allow a request that waits for a person: the rules are its own, beside all layers of the run.
  'src/core/grant/principal.ts',
  'src/core/tool/permit.ts',
  'src/core/tool/toolkit.ts',
  // Which agents can never come near files or programs, before one is started. It allows nothing.
  'src/core/operations/look/needs.ts',
]

/** What makes a run or lets one go on, and who uses it. A new name here is a new door: add it to the doors matrix. */
const starters: readonly (readonly [name: string, ...users: string[]])[] = [
  [
    'spawn',
    'src/core/delegation/background/start-child.ts',
    'src/core/delegation/called-children.ts',
    'src/core/delegation/run/eager.ts',
    'src/core/delegation/run/task.ts',
    'src/recipes/open/start-open.ts',
  ],
  ['planEager', 'src/core/delegation/spawn.ts'],
  ['planReply', 'src/core/runtime/lazy.ts'],
  ['planHostReply', 'src/core/delegation/background/start-child.ts'],
  // How an input comes to a conversation: in its turn, or instead of what is going on.
  ['planSay', 'src/core/runtime/lazy.ts', 'src/testing/conformance/engine-conformance.ts'],
  ['planRestart', 'src/core/runtime/lazy.ts'],
  ['planMutate', 'src/core/conversation/conversation.ts'],
  ['planApproval', 'src/core/runtime/lazy.ts'],
  // A delegation that is tried again is what it was: the same input under the same ceiling.
  [
    'openTurn',
    'src/core/rules/turn/say.ts',
    'src/core/rules/delegation/spawn.ts',
    'src/core/rules/delegation/retry-child.ts',
    'src/core/rules/delegation/wake.ts',
  ],
  ['newTurn', 'src/core/rules/delegation/restore-session.ts', 'src/core/rules/turn/observe.ts'],
  [
    'beginTurn',
    'src/core/rules/history/merge.ts',
    'src/core/rules/history/mutate.ts',
    'src/core/rules/history/remake-turn.ts',
  ],
  ['remakeTurn', 'src/core/rules/history/fork.ts'],
  [
    'replaceTurn',
    'src/core/rules/history/rerun.ts',
    'src/core/rules/history/retry-node.ts',
    'src/core/rules/history/settle-call.ts',
  ],
  // A lane is bound by all that bound what it was forked from.
  [
    'newConversation',
    'src/core/rules/delegation/session.ts',
    'src/core/rules/history/fork.ts',
    'src/core/rules/delegation/retry-child.ts',
    'src/core/rules/delegation/spawn.ts',
  ],
  ['planFork', 'src/core/conversation/history-handle.ts'],
  ['planMerge', 'src/core/conversation/history-handle.ts'],
  ['planRetryNode', 'src/core/conversation/history-handle.ts', 'src/core/rules/history/settle-call.ts'],
  ['planSettle', 'src/core/conversation/inbox/settle.ts'],
  ['planRerun', 'src/core/conversation/history-handle.ts'],
  ['planEdit', 'src/core/conversation/history-handle.ts'],
  [
    'freezeLayer',
    'src/core/delegation/child-authority.ts',
    'src/core/grant/principal.ts',
    'src/core/runtime/resolve-agent.ts',
    'src/core/runtime/start-run.ts',
  ],
]

/**
 * Everyone in the rooms who reads or writes the disk of this machine by himself, and with what right (I11). Whatever path a
 * model gives goes through the file domain instead. A new line here is a new way around it: argue it in review.
 */
const diskUsers: Readonly<Record<string, string>> = {
  'src/core/base/node-system.ts': 'hands the modules of Node on',
  'src/core/base/system/own-files.ts': 'looks what the runtime’s own files are, which no agent reaches',
  'src/core/base/system/user-folders.ts': 'asks for the home folder of the user',
  'src/core/files/disk.ts': 'is the file domain',
  'src/core/files/disk-work.ts': 'is the file domain',
  'src/core/files/erase-folder.ts': 'is the file domain: it deletes the folder of an owner, whose name is a digest',
  'src/core/files/held-directory.ts': 'is the file domain',
  'src/core/files/text-file.ts': 'reads the text of a definition, for those below',
  'src/core/model/config.ts': 'reads the settings of the user',
  'src/server/identity/local-token.ts': 'keeps the token of this machine in a file of its user',
  'src/server/page/files.ts':
    'reads the page that the build made: every file of one folder, by no name that somebody gives',
  'src/server/http/serve.ts': 'makes the socket that the application names',
  'src/core/tool/git-environment.ts': 'looks whether a Mac has git',
  'src/core/tools/memory-file.ts': 'keeps memories in the folder that the application names',
  'src/core/extension/prompt-files.ts': 'reads the prompt file that the application names',
  'src/recipes/text/read-text.ts': 'reads the text of a definition, for those below',
  'src/recipes/discovery/load-definition.ts': 'reads the definition that a person runs, or a part of it in its folder',
  'src/recipes/dialects/load-agent-file.ts': 'the same',
  'src/recipes/recipe/recipe-source.ts': 'the same',
  'src/recipes/recipe/sub-recipes.ts': 'reads the parts of a recipe, in its folder',
  'src/recipes/recipe/parameters.ts': 'reads the file that a person names as a parameter of what he runs',
  'src/recipes/template/includes.ts': 'reads the parts of a recipe, in its folder',
  'src/recipes/open/sources.ts': 'reads the parts of a recipe, and files that its values name, in its folder',
  'src/recipes/open/describe.ts': 'looks whether a part of a recipe has changed',
  'src/recipes/open/open-subagents.ts': 'looks whether the files are there that the application names',
  'src/recipes/open/start-open.ts': 'finds out where a folder really is that the file domain has opened',
  'src/recipes/discovery/discover.ts': 'finds definitions of the project and of the user',
  'src/recipes/discovery/places.ts':
    'looks for the root of the project, finds definitions and skills, and follows no link out of the project',
  'src/recipes/discovery/project-files.ts':
    'reads AGENTS.md, CLAUDE.md and their like inside of the repository; `Files.isKept` says which an agent may know of',
  'src/recipes/discovery/skills.ts':
    'reads skills of the project and of the user, each in its own folder; `Files.isKept` says which an agent may know of',
}
/** Rooms whose work is on the disk: a store's own files, what a person types, and what tests are made of. */
const diskRooms = ['core/store', 'stores', 'cli', 'testing']
const diskModules = [
  'node:fs',
  'node:fs/promises',
  'src/core/base/node-system.ts',
  'src/core/files/text-file.ts',
  'src/recipes/text/read-text.ts',
]

interface Source {
  readonly file: string
  readonly room: string
  readonly text: string
  readonly tree: ts.SourceFile
  readonly nodes: readonly ts.Node[]
  readonly imports: readonly Import[]
}

interface Import {
  /** As written, or for our own files the path from the root of the repository. */
  readonly target: string
  /** Empty where only the module itself is named; `*` stands for all names. */
  readonly names: readonly string[]
}

const root = path.resolve(import.meta.dirname, '..')
const sources = sourceFiles().map(readSource)

describe('rooms', () => {
  test('every file is in a known room', () => {
    const known = [...rooms, ...around]

    expect(sources.filter(({ room }) => !known.includes(room)).map(({ file }) => file)).toEqual([])
  })

  test('a file imports only what its room may', () => {
    const wrong = sources.flatMap((source) =>
      source.imports
        .filter(({ target }) => target.startsWith('src/') && !mayImport(source, target))
        .map(({ target }) => `${source.file} imports ${target}`),
    )

    expect(wrong).toEqual([])
  })

  test('the pure rooms do not touch Node', () => {
    const wrong = sources.flatMap((source) =>
      (source.file === system || isOfMachine(source.file) ? [] : source.imports)
        .filter(({ target }) => target.startsWith('node:') || target === system || isOfMachine(target))
        .filter(({ target }) => nodeModules[source.room]?.includes(target) === false)
        .map(({ target }) => `${source.file} imports ${target}`),
    )

    expect(wrong).toEqual([])
  })

  test('nothing of the `ai` package is needed', () => {
    const { dependencies, peerDependencies = {} } = JSON.parse(
      readFileSync(path.join(root, 'package.json'), 'utf8'),
    ) as Record<string, Record<string, string>>
    const wrong = sources.filter(({ imports }) => imports.some(({ target }) => /^ai(?:\/|$)/.test(target)))

    expect(wrong.map(({ file }) => file)).toEqual([])
    expect(Object.keys({ ...dependencies, ...peerDependencies })).not.toContain('ai')
  })

  test('no file imports itself in a circle, types included', () => {
    expect(circles(importsOfFiles())).toEqual([])
  })

  test('no folder imports itself in a circle, types included', () => {
    expect(circles(importsOfFolders())).toEqual([])
  })

  test('a folder has at most 20 files', () => {
    const folders = sources.map(({ file }) => path.dirname(file))
    const full = [...new Set(folders)].filter((folder) => folders.filter((one) => one === folder).length > 20)

    expect(full).toEqual([])
  })
})

describe('single doors (I8)', () => {
  test('only agent/call streams from a model', () => {
    const calls = findings((node, source) => isCallOf(node, 'stream') && !isWrappingModel(node, source))

    expect(outside(calls, 'src/core/agent/step/call.ts')).toEqual([])
  })

  test('only tool/invoke executes a tool', () => {
    const calls = findings((node) => isCallOf(node, 'execute'))

    // A user's own node kind is no tool: its code is run beside it, and starts children by the same door.
    expect(outside(calls, 'src/core/tool/invoke.ts', 'src/core/delegation/run/kind.ts')).toEqual([])
  })

  test('only delegation/spawn plans a child', () => {
    expect(outside(importersOf('planSpawn', 'src/'), 'src/core/delegation/spawn.ts')).toEqual([])
  })

  test.each(starters)('everyone who uses %s to start, resume or answer a run is known', (name, ...known) => {
    expect(outside(importersOf(name, 'src/'), ...known)).toEqual([])
    expect(known.filter((file) => !importersOf(name, 'src/').includes(file))).toEqual([])
  })

  test('only grant/decide decides', () => {
    const definitions = findings((node) => isDefinitionOf(node, 'decide'))

    expect(outside(definitions, 'src/core/grant/decide.ts')).toEqual([])
  })

  test('only grant/request makes a request (I11)', () => {
    const marks = findings((node) => ts.isIdentifier(node) && node.text === 'requestMark')

    expect(outside(marks, 'src/core/grant/request.ts')).toEqual([])
  })

  test('only tool/process-group starts programs for agents (I11)', () => {
    const known = [
      'src/core/tool/process-group.ts',
      // Asks git what the user has set for it: a fixed command line, in no folder of an agent.
      'src/core/tool/git-environment.ts',
      // The demonstration's second process, and processes that tests need: nobody but them names these programs.
      'src/cli/demo/command.ts',
      // The browser of a person who asks for it at his terminal.
      'src/cli/serve/open-browser.ts',
      'src/testing/crash/outside-counter.ts',
      'src/testing/crash/worker-process.ts',
    ]

    expect(outside(importersOfModules(['node:child_process']), ...known)).toEqual([])
    expect(
      outside(
        importersOf('startGroup', 'src/'),
        'src/core/tool/run-process.ts',
        'src/core/tools/mcp/stdio-transport.ts',
      ),
    ).toEqual([])
  })

  test('everyone who reads the disk by himself is known, with the reason (I11)', () => {
    const users = importersOfModules(diskModules)
    const isOfRoom = (file: string) => diskRooms.some((room) => file.startsWith(`src/${room}/`))

    expect(users.filter((file) => !isOfRoom(file) && !Object.hasOwn(diskUsers, file))).toEqual([])
    expect(Object.keys(diskUsers).filter((file) => !users.includes(file) && file !== system)).toEqual([])
  })

  test('everyone who asks for a decision is known', () => {
    expect(outside(importersOf('decide', 'src/core/grant/decide.ts'), ...deciders)).toEqual([])
  })
})

describe('forbidden in the sources', () => {
  test.each<[string, (node: ts.Node, source: Source) => boolean]>([
    ['void before an expression', (node) => ts.isVoidExpression(node)],
    ['a regular expression made at run time', isMadeRegExp],
    ['the type any', (node) => node.kind === ts.SyntaxKind.AnyKeyword],
    ['export *', isExportAll],
    [
      'JSON.parse outside base/json.ts',
      // The client has its own: it imports no room, and reads only what its server wrote.
      (node, { file }) =>
        isMember(node, 'JSON', 'parse') && !['src/core/base/json.ts', 'src/server/client/read-json.ts'].includes(file),
    ],
    ['structuredClone', (node) => ts.isIdentifier(node) && node.text === 'structuredClone'],
    ['AbortSignal.any', (node) => isMember(node, 'AbortSignal', 'any')],
    ['AbortSignal.timeout', (node) => isMember(node, 'AbortSignal', 'timeout')],
  ])('%s', (_, isWrong) => {
    expect(findings(isWrong)).toEqual([])
  })

  test('TODO and FIXME', () => {
    const wrong = sources.filter(({ text }) => /\b(?:TODO|FIXME)\b/.test(text)).map(({ file }) => file)

    expect(wrong).toEqual([])
  })
})

test('a test in the sources has the name of the file that it tests', () => {
  const tests = filesOfSources().filter((file) => file.endsWith('.test.ts'))

  expect(tests.filter((file) => !existsSync(path.join(root, file.replace('.test.ts', '.ts'))))).toEqual([])
})

test('an exported type name is declared once', () => {
  const files = new Map<string, string[]>()
  for (const { file, text } of sources) {
    for (const [, name = ''] of text.matchAll(/^export (?:declare |abstract )*(?:interface|type|class) (\w+)/gm)) {
      files.set(name, [...(files.get(name) ?? []), file])
    }
  }
  // A class and an interface of one name in one file are one type.
  const twice = [...files].filter(([, found]) => new Set(found).size > 1)

  expect(files.size).toBeGreaterThan(500)
  expect(twice).toEqual([])
})

test('a file that 18 others import opens with what it owns, who calls it, and what must stay true', () => {
  const most = sources
    .filter(({ file, room }) => !['index', 'doors'].includes(room) && !file.endsWith('.made.ts'))
    .filter(({ file }) => sources.filter(({ imports }) => imports.some(({ target }) => target === file)).length >= 18)
  const lacks = most.filter(({ text }) => !/^(?:\/\/.*\n){6,15}\n/.test(text) || !/tays? true/.test(text))

  expect(most.length).toBeGreaterThan(30)
  expect(lacks.map(({ file }) => file)).toEqual([])
})

describe('size', () => {
  test('no file is longer than 700 lines', () => {
    const wrong = sources
      .filter((source) => lineCount(source) > 700)
      .map((source) => `${source.file}: ${lineCount(source)}`)

    expect(wrong).toEqual([])
  })

  test('no function takes more than four parameters', () => {
    expect(findings((node) => parameterCount(node) > 4)).toEqual([])
  })
})

describe('importing the built package', () => {
  const built = pathToFileURL(path.join(root, 'dist/')).href
  const isBuilt = existsSync(path.join(root, 'dist/index.js'))

  test('loads nothing but itself and Node: no store driver, no provider, no validator', (context) => {
    context.skip(!isBuilt, 'dist is not built: npm run build')

    const { modules, builtins } = loadedBy("import('legate')")
    const foreign = modules.filter((url) => !url.startsWith('node:') && !url.startsWith(built))

    expect(foreign).toEqual([])
    expect([...modules, ...builtins].filter((name) => /\bsqlite$/.test(name))).toEqual([])
    expect(modules).toContain(`${built}index.js`)
  })

  test('reads little: four files, in one byte a character', (context) => {
    context.skip(!isBuilt, 'dist is not built: npm run build')

    const { files, texts, kilobytes } = readBy('legate')
    figure('files of the package that importing it reads', `${files.length}, ${kilobytes} kB`)

    expect(files.length).toBeLessThanOrEqual(4)
    // What is over it belongs behind an import() where it is used. Requests for secrets, owners of files and the runtime's own
    // files are decided before anything runs, so they are read with it: 572.
    expect(kilobytes).toBeLessThan(580)
    expect(files.filter((_, at) => /[^\0-\x7f]/.test(texts[at] ?? ''))).toEqual([])
  })

  test('reads less than two thirds of that by each of its small doors', (context) => {
    context.skip(!isBuilt, 'dist is not built: npm run build')

    const isLarge = (door: string) =>
      [
        '.',
        './a2a',
        './acp',
        './background',
        './compat',
        './mcp-server',
        './recipe',
        './server',
        './testing',
        './package.json',
      ].includes(door)
    const small = Object.keys(manifest.exports).filter((door) => !isLarge(door))
    const read = small.map((door) => ({ door, kilobytes: readBy(`legate${door.slice(1)}`).kilobytes }))

    // The tools read grants too, where principals and tokens stand, and the folders of owners: 388.
    expect(read.filter(({ kilobytes }) => kilobytes >= 392)).toEqual([])
  })

  test('takes little longer than importing an empty module', (context) => {
    context.skip(!isBuilt, 'dist is not built: npm run build')

    const rounds = Array.from({ length: 7 }, () => importMs("'legate'") - importMs("'data:text/javascript,'"))
    figure('import of the package', `median ${median(rounds).toFixed(1)} ms more than an empty module`)

    // A busy machine only adds time, so the fastest round says most about the code.
    expect(Math.min(...rounds)).toBeLessThan(60)
  })
})

/**
 * Lines that add a column to every row, a tool option that its task keeps, and a budget dimension: each goes before the first
 * line that begins like `before`, from the line `within` on.
 */
const additions: readonly (readonly [file: string, within: string, before: string, line: string])[] = [
  ...['Conversation', 'Turn', 'Node', 'Link'].flatMap((row) => [
    ['src/core/graph/rows.ts', `export interface ${row} {`, '}', 'readonly trial: string | null'] as const,
    ['src/core/graph/rows.ts', `export const ${row.toUpperCase()}_COLUMNS`, '}', 'trial: { usual: null },'] as const,
  ]),
  ['src/core/graph/rows.ts', 'export const TOOL_OPTIONS = [', ']', "'trial',"],
  ['src/core/tool/tool.ts', 'export interface ToolDefinition<', '}', 'readonly trial?: string'],
  ['src/core/tool/tool.ts', 'const OPTIONS:', '}', 'trial: text,'],
  ['src/core/tool/tool.ts', 'export function tool<', '    [toolMark]', 'trial: definition.trial ?? null,'],
  ['src/core/graph/limits.ts', 'export interface TurnLimits {', '}', 'readonly trials: number'],
  [
    'src/core/graph/limits.ts',
    'export const LIMITS:',
    '}',
    "trials: { usual: 9, least: 0, counter: 'trials', unit: 'trials' },",
  ],
  ['src/core/graph/limits.ts', 'export function eachLimit(', '  }', "trials: of('trials'),"],
  ['src/core/graph/limits.ts', 'export interface Account {', '}', 'readonly trials: number'],
  ['src/core/graph/limits.ts', 'export const EMPTY_ACCOUNT:', '}', 'trials: 0,'],
  ['src/core/graph/limits.ts', 'export function changedAccount(', '  }', 'trials: account.trials,'],
]

describe('where things change', () => {
  test('a column, a kept tool option and a budget dimension compile with the files that ARCHITECTURE.md names', () => {
    const wrong = filesThatDoNotCompile(changedTexts())
    const made = ['src/core/graph/rows.made.ts', 'src/core/store/codec/rows.made.ts']

    expect(wrong.filter((file) => !made.includes(file))).toEqual(['src/core/store/codec/parts.ts'])
  }, 240_000)
})

/** The text of each file with its additions. */
function changedTexts(): ReadonlyMap<string, string> {
  const texts = new Map<string, string>()
  for (const [file, within, before, line] of additions) {
    const lines = (texts.get(file) ?? readFileSync(path.join(root, file), 'utf8')).split('\n')
    const from = lines.findIndex((one) => one.startsWith(within))
    const at = lines.findIndex((one, index) => index > from && one.startsWith(before))
    expect({ file, within, isThere: from >= 0 && at >= 0 }).toEqual({ file, within, isThere: true })
    texts.set(file, lines.toSpliced(at, 0, line).join('\n'))
  }
  return texts
}

/** Compiles a copy of the sources that has these texts in place of its own. */
function filesThatDoNotCompile(texts: ReadonlyMap<string, string>): string[] {
  const folder = mkdtempSync(path.join(tmpdir(), 'legate-changed-'))
  try {
    for (const name of ['src', 'package.json', 'tsconfig.json']) {
      cpSync(path.join(root, name), path.join(folder, name), {
        recursive: true,
        filter: (file) => !/\.test\.ts$/.test(file),
      })
    }
    symlinkSync(path.join(root, 'node_modules'), path.join(folder, 'node_modules'))
    for (const [file, text] of texts) writeFileSync(path.join(folder, file), text)
    const { stdout } = spawnSync(path.join(root, 'node_modules/.bin/tsc'), ['--noEmit', '--pretty', 'false'], {
      cwd: folder,
      encoding: 'utf8',
    })
    return [...new Set([...stdout.matchAll(/^(\S+?)\(\d+,\d+\): error/gm)].map(([, file = '']) => file))].sort()
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The files of the built package that importing one of its doors reads. */
function readBy(door: string) {
  const built = pathToFileURL(path.join(root, 'dist/')).href
  const { modules } = loadedBy(`import('${door}')`)
  const files = [...new Set(modules)].filter((url) => url.startsWith(built))
  const texts = files.map((url) => readFileSync(fileURLToPath(url), 'utf8'))
  return { files, texts, kilobytes: Math.round(texts.join('').length / 1_000) }
}

function mayImport(source: Source, target: string): boolean {
  const { room } = source
  const to = roomOf(target)
  if (to === room || ['index', 'doors', 'testing'].includes(room)) return true
  switch (room) {
    case 'cli':
      return doors.includes(target) || plainHelp.includes(target) || isOfMachine(target)
    case 'protocols':
      return doors.includes(target) || to === 'base'
    case 'server':
      return doors.includes(target) || ['base', 'operations', 'protocols'].includes(to)
    case 'stores':
    case 'recipes':
    case 'client':
      return rooms.includes(to)
    default:
      if (source.file === inlineLoader.from && target === inlineLoader.to) return true
      return (narrowRooms[room] ?? rooms.slice(0, rooms.indexOf(room))).includes(to)
  }
}

/** What the command line takes from the ground. */
const plainHelp = ['base/json', 'base/loopback', 'base/text', 'store/process-proof'].map(
  (name) => `src/core/${name}.ts`,
)

/** Each circle once, as the files on it. */
type Imports = ReadonlyMap<string, ReadonlySet<string>>

function importsOfFiles(): Imports {
  return new Map(sources.map(({ file, imports }) => [file, new Set(imports.map(({ target }) => target))]))
}

/** Which folders the files of a folder import, other than its own. */
function importsOfFolders(): Imports {
  const folders = new Map<string, Set<string>>()
  for (const { file, imports } of sources) {
    const folder = path.dirname(file)
    const targets = imports.filter(({ target }) => target.startsWith('src/')).map(({ target }) => path.dirname(target))
    const known = folders.get(folder) ?? new Set()
    for (const target of targets) if (target !== folder) known.add(target)
    folders.set(folder, known)
  }
  return folders
}

function circles(imports: Imports): string[] {
  const done = new Set<string>()
  const found: string[] = []
  const visit = (file: string, trail: readonly string[]): void => {
    if (trail.includes(file)) found.push([...trail.slice(trail.indexOf(file)), file].join(' -> '))
    if (done.has(file) || trail.includes(file)) return
    for (const target of imports.get(file) ?? []) visit(target, [...trail, file])
    done.add(file)
  }
  for (const file of imports.keys()) visit(file, [])
  return found
}

function findings(isFound: (node: ts.Node, source: Source) => boolean): string[] {
  return sources.flatMap((source) =>
    source.nodes.filter((node) => isFound(node, source)).map((node) => `${source.file}:${lineOf(node, source)}`),
  )
}

function importersOf(name: string, under: string): string[] {
  return sources
    .filter(({ imports }) =>
      imports.some(
        ({ target, names }) => target.startsWith(under) && (names.includes(name) || isAllOf(names, target, name)),
      ),
    )
    .map(({ file }) => file)
}

/** `nodeOs` of the system gives no files. */
function importersOfModules(modules: readonly string[]): string[] {
  const isUsed = ({ target, names }: Import) =>
    modules.includes(target) && !(target === system && names.every((name) => name === 'nodeOs'))
  return sources.filter(({ imports }) => imports.some(isUsed)).map(({ file }) => file)
}

/** A namespace import reaches every name that its file exports. */
function isAllOf(names: readonly string[], target: string, name: string): boolean {
  if (!names.includes('*')) return false
  return sources.some(({ file, nodes }) => file === target && nodes.some((node) => isDefinitionOf(node, name)))
}

function outside(places: readonly string[], ...allowed: readonly string[]): string[] {
  return places.filter((place) => !allowed.includes(place.replace(/:\d+$/, '')))
}

/** An object that calls its own method is no second door: `this` is never a tool or a model of someone else. */
function isCallOf(node: ts.Node, method: string): boolean {
  if (!ts.isCallExpression(node) || !ts.isPropertyAccessExpression(node.expression)) return false
  const { name, expression } = node.expression
  return name.text === method && expression.kind !== ts.SyntaxKind.ThisKeyword
}

/** A model that wraps another, such as a recorder, hands its own `stream` on. */
function isWrappingModel(node: ts.Node, { room }: Source): boolean {
  if (room !== 'model' && room !== 'testing') return false
  return ts.findAncestor(node, isStreamDefinition) !== undefined
}

function isStreamDefinition(node: ts.Node): boolean {
  return isDefinitionOf(node, 'stream') || isMemberDefinitionOf(node, 'stream')
}

function isDefinitionOf(node: ts.Node, name: string): boolean {
  return (ts.isFunctionDeclaration(node) || ts.isVariableDeclaration(node)) && isNamed(node, name)
}

function isMemberDefinitionOf(node: ts.Node, name: string): boolean {
  return (ts.isMethodDeclaration(node) || ts.isPropertyAssignment(node)) && isNamed(node, name)
}

function isNamed({ name }: { readonly name?: ts.Node }, text: string): boolean {
  return name !== undefined && ts.isIdentifier(name) && name.text === text
}

function isMadeRegExp(node: ts.Node): boolean {
  if (!ts.isNewExpression(node) && !ts.isCallExpression(node)) return false
  if (!ts.isIdentifier(node.expression) || node.expression.text !== 'RegExp') return false
  const [pattern] = node.arguments ?? []
  return pattern === undefined || !(ts.isStringLiteralLike(pattern) || ts.isRegularExpressionLiteral(pattern))
}

function isExportAll(node: ts.Node): boolean {
  if (!ts.isExportDeclaration(node)) return false
  return node.exportClause === undefined || ts.isNamespaceExport(node.exportClause)
}

function isMember(node: ts.Node, object: string, member: string): boolean {
  if (!ts.isPropertyAccessExpression(node) || node.name.text !== member) return false
  return ts.isIdentifier(node.expression) && node.expression.text === object
}

/** A constructor may take more: an error has its code, message, details and cause. */
function parameterCount(node: ts.Node): number {
  if (!ts.isFunctionLike(node) || ts.isConstructorDeclaration(node)) return 0
  return node.parameters.filter(({ name }) => !(ts.isIdentifier(name) && name.text === 'this')).length
}

/** The modules that were resolved or required while `expression` ran in a process of its own. */
function loadedBy(expression: string): { modules: string[]; builtins: string[] } {
  const hook = `import { writeSync } from 'node:fs'
    export async function resolve(specifier, context, next) {
      const found = await next(specifier, context)
      writeSync(1, found.url + '\\n')
      return found
    }`
  const script = `import { createRequire, register } from 'node:module'
    register('data:text/javascript,' + ${JSON.stringify(encodeURIComponent(hook))})
    await ${expression}
    const required = Object.keys(createRequire(process.cwd() + '/').cache)
    console.log([...required, ...process.moduleLoadList.filter((name) => name.startsWith('NativeModule '))].join('\\n'))`
  const lines = runNode(script).trim().split('\n')
  return {
    modules: lines.filter((line) => !line.startsWith('NativeModule ')),
    builtins: lines.filter((line) => line.startsWith('NativeModule ')),
  }
}

/** Time of the processor: that of the clock is shared with whatever else runs. */
function importMs(specifier: string): number {
  const script = `const start = process.cpuUsage(); await import(${specifier}); const { user, system } = process.cpuUsage(start); console.log((user + system) / 1000)`
  return Number(runNode(script))
}

function runNode(script: string): string {
  return execFileSync(process.execPath, ['--input-type=module', '--eval', script], { cwd: root, encoding: 'utf8' })
}

function sourceFiles(): string[] {
  return filesOfSources().filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
}

function filesOfSources(): string[] {
  return readdirSync(path.join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .map((file) => path.posix.join('src', ...file.split(path.sep)))
    .sort()
}

function readSource(file: string): Source {
  const text = readFileSync(path.join(root, file), 'utf8')
  const tree = ts.createSourceFile(file, text, ts.ScriptTarget.ES2023, true)
  const nodes = nodesBelow(tree)
  const imports = nodes.flatMap((node) => importOf(node, file) ?? [])
  return { file, room: roomOf(file), text, tree, nodes, imports }
}

function nodesBelow(node: ts.Node): ts.Node[] {
  const found: ts.Node[] = []
  const visit = (child: ts.Node): void => {
    found.push(child)
    ts.forEachChild(child, visit)
  }
  ts.forEachChild(node, visit)
  return found
}

function importOf(node: ts.Node, file: string): Import | undefined {
  const specifier = specifierOf(node)
  if (specifier === undefined) return undefined
  const target = specifier.startsWith('.') ? path.posix.join(path.posix.dirname(file), specifier) : specifier
  return { target, names: namesOf(node) }
}

function specifierOf(node: ts.Node): string | undefined {
  if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) return literal(node.moduleSpecifier)
  if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) return literal(node.argument.literal)
  if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword)
    return literal(node.arguments[0])
  return undefined
}

function literal(node: ts.Node | undefined): string | undefined {
  return node && ts.isStringLiteralLike(node) ? node.text : undefined
}

function namesOf(node: ts.Node): string[] {
  const clause = ts.isImportDeclaration(node) ? node.importClause?.namedBindings : undefined
  const named = ts.isExportDeclaration(node) ? node.exportClause : clause
  const taken = takenFrom(node)
  if (taken !== undefined) return taken
  if (named === undefined) return ts.isImportDeclaration(node) ? [] : ['*']
  if (ts.isNamedImports(named) || ts.isNamedExports(named)) return named.elements.map(importedName)
  return ['*']
}

/** The names that `const { a, b } = await import(...)` takes. */
function takenFrom(node: ts.Node): string[] | undefined {
  const taker = ts.isAwaitExpression(node.parent) ? node.parent.parent : undefined
  if (taker === undefined || !ts.isVariableDeclaration(taker) || !ts.isObjectBindingPattern(taker.name))
    return undefined
  const { elements } = taker.name
  if (elements.some(({ dotDotDotToken }) => dotDotDotToken !== undefined)) return undefined
  return elements.map(({ propertyName, name }) => (propertyName ?? name).getText())
}

function importedName({ propertyName, name }: ts.ImportSpecifier | ts.ExportSpecifier): string {
  return (propertyName ?? name).text
}

/** A room of the core, a part of the server that stands for itself, or one of the groups around the core. */
function roomOf(file: string): string {
  const [, group = '', room = ''] = file.split('/')
  const isOwn = group === 'core' || (group === 'server' && ['client', 'protocols'].includes(room))
  return (isOwn ? room : group).replace(/\.ts$/, '')
}

function lineOf(node: ts.Node, { tree }: Source): number {
  return tree.getLineAndCharacterOfPosition(node.getStart(tree)).line + 1
}

function lineCount({ text }: Source): number {
  return text.trimEnd().split('\n').length
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
}
