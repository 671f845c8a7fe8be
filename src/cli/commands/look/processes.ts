import { type Call, EXIT, isSet } from '../../command/command.ts'
import type { Desk } from '../../desk/desk.ts'
import { withDesk } from '../../store/open-desk.ts'
import { age, duration, plural } from '../../terminal/amounts.ts'
import { oneLine } from '../../terminal/clean.ts'
import { jsonLine, write } from '../../terminal/output.ts'
import { painter } from '../../terminal/paint.ts'
import { type TableColumn, tableText } from '../../terminal/table.ts'

type ProcessInfo = Awaited<ReturnType<Desk['processes']>>[number]

/** Lists the processes that work on a store: those that live first. */
export function listProcesses(call: Call): Promise<number> {
  return withDesk(call, 'read', async (desk) => {
    const all = [...(await desk.processes({ running: true }))].sort(byLife)
    if (isSet(call, 'quiet')) for (const { pid } of all) await write(`${pid}\n`)
    else if (isSet(call, 'json')) for (const one of all) await write(jsonLine(one))
    else await write(table(all, call))
    return EXIT.completed
  })
}

function byLife(a: ProcessInfo, b: ProcessInfo): number {
  return Number(b.isAlive) - Number(a.isAlive) || (a.startedAt ?? 0) - (b.startedAt ?? 0)
}

const BEFORE: readonly TableColumn[] = [
  { title: 'PID', isNumber: true },
  { title: 'MACHINE' },
  { title: 'STATE' },
  { title: 'HEARD', isNumber: true },
  { title: 'UP', isNumber: true },
  { title: 'STEPS', isNumber: true },
]
const QUEUE: TableColumn = { title: 'QUEUE' }
const AGENTS: TableColumn = { title: 'AGENTS' }

function table(all: readonly ProcessInfo[], { env }: Call): string {
  if (all.length === 0) return 'No process works on this store.\n'
  const paint = painter(process.stdout, env)
  const others = differing(all)
  const hasQueue = all.some(({ queue }) => queue != null)
  const columns = [...BEFORE, ...(hasQueue ? [QUEUE] : []), AGENTS]
  const cells = all.map((one) => [
    ...factsOf(one),
    ...(hasQueue ? [oneLine(one.queue ?? '-')] : []),
    agentNames(one, others),
    oneLine((one.running ?? []).map(activityOf).join('; ')),
  ])
  const { head, lines } = tableText(columns, 'NOW', cells)
  const shown = all.flatMap((one, at) => {
    const line = lines[at] ?? ''
    const failing = failures(one).map((text) => paint('yellow', `  ${text}`))
    return [one.isAlive ? line : paint('red', line), ...failing]
  })
  return `${[paint('dim', head), ...shown].join('\n')}\n`
}

function factsOf({ pid, host, isAlive, isDraining, heardAt, startedAt, running }: ProcessInfo): string[] {
  const now = Date.now()
  return [
    String(pid),
    oneLine(host ?? '?'),
    isAlive ? (isDraining ? 'draining' : 'alive') : 'gone',
    heardAt === null ? '-' : age(now - heardAt),
    startedAt === null ? '-' : duration(now - startedAt),
    running === null ? '-' : String(running.length),
  ]
}

/** Agents of which processes that live have different definitions. */
function differing(all: readonly ProcessInfo[]): ReadonlySet<string> {
  const known = new Map<string, string>()
  const others = new Set<string>()
  for (const { definitions } of all.filter(({ isAlive }) => isAlive)) {
    for (const [name, hash] of Object.entries(definitions ?? {})) {
      if ((known.get(name) ?? hash) !== hash) others.add(name)
      known.set(name, hash)
    }
  }
  return others
}

/**
 * Names a definition by its hash where processes have different ones. The empty name stands for agents of files, which need no code:
 * every process runs them.
 */
function agentNames({ agents, definitions }: ProcessInfo, others: ReadonlySet<string>): string {
  if (agents === null) return '?'
  const named = agents.filter((name) => name !== '')
  const names = named.map((name) => (others.has(name) ? `${name}@${(definitions?.[name] ?? '?').slice(0, 8)}` : name))
  return oneLine(names.join(', ')) || (agents.length > 0 ? 'agent files' : 'none')
}

function activityOf({ path, tool }: NonNullable<ProcessInfo['running']>[number]): string {
  return `${path.join(' > ')}${tool === null ? '' : `: ${tool}`}`
}

/** Its tool sources that do not start. */
function failures({ sources }: ProcessInfo): string[] {
  const failing = sources.filter((source) => source.failures > 0)
  return failing.map(({ name, failures: times, since, error, leaves }) => {
    const left = leaves.length === 0 ? '' : '; its steps are left to other processes'
    const why = `${plural(times, 'failure')} in ${age(Date.now() - since)}: ${error ?? ''}`
    return oneLine(`${name} does not start, ${why}${left}`)
  })
}
