// The grant of the command line: a person allows and forbids, and the grant says whom it binds.
//
// Must stay true:
//   - A file's agents have the grant of the command line: they ask before they change anything, and `--allow` lets requests pass.
//   - An agent in code has its own grant: `--allow` answers what that grant and the options of its module ask for, and adds nothing.
//   - `--deny` is one more layer, which only takes away.

import { leaveFree } from '../../doors/compat.ts'
import { narrow } from '../../doors/grant.ts'
import type { AgentFile } from '../../doors/recipe.ts'
import type { AnyAgent, Grant, RuntimeOptions } from '../../index.ts'
import { type Call, CliError, EXIT, listOption } from '../command/command.ts'

/** Memory tools write text that every later run of the user reads, whatever folder it works in. */
const MEMORY: readonly string[] = ['tool:memory_remember', 'tool:memory_forget']
const ASKED: readonly string[] = [
  ...['file.write:/workspace/**', 'file.delete:/workspace/**', 'exec:*', 'net:*', 'secret:*'],
  ...MEMORY,
]

/**
 * The grant of a run from the command line: it may read below the working folder, and asks before it changes anything, reaches a
 * host or hands over a secret.
 */
export function rootGrant({ allow = [], deny = [], named }: CallGrant = {}): Grant {
  const free = [...(named?.freed ?? []), ...allow]
  return {
    use: ['tool:*', 'agent:*', 'model:*', 'file.list:/workspace/**', 'file.read:/workspace/**', ...ASKED, ...allow],
    ask: ASKED,
    ...(free.length === 0 ? {} : { free }),
    ...(deny.length === 0 ? {} : { deny }),
  }
}

/** The requests that a person allows and forbids on the command line. */
export interface CallGrant {
  /**
   * The file that a person at a terminal has named for this run: what it says to run without asking counts. Left out where a
   * program starts the command in a folder that somebody else may have filled: an editor, a client, a supervisor.
   */
  readonly named?: Pick<AgentFile, 'freed'>
  readonly allow?: readonly string[]
  readonly deny?: readonly string[]
}

/** Reads `--allow` and `--deny`. A rule that could never match is refused. */
export function callGrant(call: Call): CallGrant {
  const [allow, deny] = [listOption(call, 'allow'), listOption(call, 'deny')]
  for (const [option, rules] of Object.entries({ allow, deny })) {
    try {
      narrow([], `--${option}`, { use: rules })
    } catch (error) {
      throw new CliError(error instanceof Error ? error.message : String(error), EXIT.usage, { namesHelp: false })
    }
  }
  return { allow, deny }
}

/** The agents and options of a module under the rules of the command line. */
export function ruledModule(given: ModuleOptions, { allow = [], deny = [] }: CallGrant): ModuleOptions {
  if (allow.length + deny.length === 0) return given
  const { agents, grant, ...options } = given
  const ruled: Grant = {
    ...grant,
    ...(grant?.ask === undefined ? {} : { free: [...(grant.free ?? []), ...allow] }),
    deny: [...(grant?.deny ?? []), ...deny],
  }
  return { ...options, grant: ruled, agents: agents.map((agent) => leaveFree(agent, allow)) }
}

type ModuleOptions = RuntimeOptions & { readonly agents: readonly AnyAgent[] }
