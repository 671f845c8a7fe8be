import { type NodeRun, ownFolderOf } from '../../core/agent/hooks/node-run.ts'
import { messageOf } from '../../core/base/error.ts'
import type { Json } from '../../core/base/json.ts'
import type { RowToolEnd } from '../../core/delegation/background/row-tool.ts'
import { type ProgramRequest, programRequest, requestText } from '../../core/grant/request.ts'
import { textOf } from '../../core/graph/content.ts'
import { checkedAnswer } from '../../core/graph/kinds.ts'
import { keptOptions, NEW_NODE } from '../../core/graph/rows.made.ts'
import { type CheckResult, planChecked } from '../../core/rules/turn/check-answer.ts'
import type { PlannedTask } from '../../core/rules/turn/expand.ts'
import { plainEnvironment } from '../../core/tool/environment.ts'
import { permit } from '../../core/tool/permit.ts'
import { errorEnd } from '../../core/tool/result.ts'
import { runProgram } from '../../core/tool/run-process.ts'
import { programOf } from '../../core/tools/shell-tool.ts'
import type { RetryConfig } from '../agent-file/recipe.ts'
import { CHECK, type CheckPlace, ON_FAILURE } from './final-output.ts'

/** Runs the checks of a recipe after an answer, or the cleanup after a failed one, and commits the next step. */
export async function runChecks(
  run: NodeRun,
  name: string,
  { retry, ...place }: CheckPlace & { readonly retry: RetryConfig },
): Promise<RowToolEnd> {
  if (checkedAnswer(run.node) === undefined) return errorEnd(`There is no tool "${name}" to call.`)
  const verdict = await (name === CHECK ? check(run, retry, place) : clean(run, retry, place))
  if (!('is' in verdict)) return verdict
  const { home, node, work } = run
  await home.ledger.commit({
    kind: 'result',
    rootId: node.rootId,
    plan: (draft) => planChecked(draft, work.claim, verdict),
  })
  return 'done'
}

type CheckAnswer = Promise<CheckResult | Exclude<RowToolEnd, 'done'>>

async function check(run: NodeRun, retry: RetryConfig, place: CheckPlace): CheckAnswer {
  const attempt = triesBefore(run)
  const permitted: PermittedCommand[] = []
  // All commands are decided before the first one runs, so that a command allowed once runs once.
  for (const [at, { command }] of retry.checks.entries()) {
    const one = permitOne(run, { command, folder: place.folder }, { check: at + 1, of: retry.checks.length })
    if ('ask' in one) return one
    if ('trouble' in one) return endRetries(one.code, one.trouble)
    permitted.push(one)
  }
  for (const { command, request } of permitted) {
    const ran = await runCommand(run, { request, command, ...place, seconds: checkSeconds(retry) })
    if ('trouble' in ran) return endRetries(ran.code, ran.trouble)
    if (ran.exitCode === 0) continue
    const text = `The check failed (exit ${ran.exitCode}): ${command}${ran.said}`
    if (attempt >= retry.maxRetries) return exhausted(retry, text)
    return {
      is: 'again',
      text,
      isError: true,
      attempt,
      first: retry.onFailure === null ? null : planCleanup(run, retry),
    }
  }
  return { is: 'passed', text: 'The checks passed.' }
}

async function clean(run: NodeRun, retry: RetryConfig, place: CheckPlace): CheckAnswer {
  const command = retry.onFailure ?? ''
  const one = permitOne(run, { command, folder: place.folder }, run.node.input.call?.input ?? null)
  if ('ask' in one) return one
  if ('trouble' in one) return endRetries(one.code, one.trouble)
  const ran = await runCommand(run, { ...one, ...place, seconds: cleanSeconds(retry) })
  if ('trouble' in ran) return endRetries(ran.code, ran.trouble)
  if (ran.exitCode === 0) {
    const text = 'Begun again after a check that failed.'
    return { is: 'again', text, isError: false, attempt: triesBefore(run) - 1, first: null }
  }
  return endRetries('retry', `On_failure command failed: ${command} (exit ${ran.exitCode})${ran.said}`)
}

function exhausted({ maxRetries }: RetryConfig, text: string): CheckResult {
  const message = `Maximum retry attempts (${maxRetries}) exceeded. Unable to complete the task successfully. ${text}`
  return { is: 'over', failure: { code: 'retries_exhausted', message } }
}

function endRetries(code: string, why: string): CheckResult {
  return { is: 'over', failure: { code, message: `Retry logic encountered an error: ${why}` } }
}

/** Plans the cleanup, which must not run twice; checks may run any number of times. */
function planCleanup({ node }: NodeRun, { onFailure }: RetryConfig): PlannedTask {
  const call = { id: node.id, name: ON_FAILURE, input: { command: onFailure } }
  return { call, options: keptOptions(NEW_NODE), delegates: false }
}

/** Counts the failed checks of this run before this node. */
function triesBefore({ tree, node, turn }: NodeRun): number {
  const failed = tree.nodesOf(turn.id).filter(({ ordinal, input, output }) => {
    return ordinal < node.ordinal && input.call?.name === CHECK && output.isError === true
  })
  return failed.length
}

type Trouble = { readonly code: string; readonly trouble: string }

type CommandEnd = { readonly exitCode: number; readonly said: string } | Trouble

const SHOWN = 2_000

type PermittedCommand = Pick<CheckCommand, 'request' | 'command'>

/**
 * Decides on a command: its permission, the reason of a refusal, or the question for a person. `input` distinguishes
 * equal command lines.
 */
function permitOne(
  run: NodeRun,
  { command, folder }: { readonly command: string; readonly folder: string | null },
  input: Json,
): PermittedCommand | Trouble | Extract<RowToolEnd, { ask: unknown }> {
  const request = programRequest(programOf(command), { folder })
  const permission = permit(run, request, input)
  if (permission.verdict === 'ask') return permission
  if (permission.verdict === 'allow') return { request: permission.request, command }
  return { code: 'denied', trouble: `${requestText(request)} is not allowed here: ${permission.reason}.` }
}

async function runCommand(run: NodeRun, one: CheckCommand): Promise<CommandEnd> {
  const code = () => runDecided(run, one)
  const { node, work, home } = run
  if (home.live.tape === null) return code()
  const running = { node, work, current: null, name: 'exec', input: one.command }
  const given = await home.live.tape.run(running, async () => ({ value: await code() }))
  if ('value' in given) return given.value as CommandEnd
  work.signal.throwIfAborted()
  return { code: 'retry', trouble: 'error' in given ? textOf(given.error) : 'It was stopped.' }
}

interface CheckCommand extends CheckPlace {
  readonly request: ProgramRequest
  readonly command: string
  readonly seconds: number
}

async function runDecided(run: NodeRun, { request, command, cwd, folder, seconds }: CheckCommand): Promise<CommandEnd> {
  const { signal } = run.work
  // A folder that a model chose is one of the owner's already.
  const own = folder === null ? ownFolderOf(run) : null
  try {
    const env = { ...plainEnvironment(), AGENT: 'legate', GOOSE_TERMINAL: '1' }
    const start = (place: string) =>
      runProgram(request, { signal, cwd: place, env, timeoutMs: seconds * 1_000, maxOutputBytes: 16_384 })
    const { exitCode, stdout, stderr, timedOut } = own === null ? await start(cwd) : await own.use(start)
    if (timedOut) return { code: 'retry', trouble: `Shell command timed out after ${seconds}s: ${command}` }
    const said = `${stdout}${stderr}`.trim().slice(-SHOWN)
    return { exitCode, said: said === '' ? '' : `\n${said}` }
  } catch (error) {
    signal.throwIfAborted()
    return { code: 'retry', trouble: messageOf(error) }
  }
}

function checkSeconds({ timeoutSeconds }: RetryConfig): number {
  return timeoutSeconds ?? secondsIn('GOOSE_RECIPE_RETRY_TIMEOUT_SECONDS') ?? 300
}

function cleanSeconds({ onFailureTimeoutSeconds }: RetryConfig): number {
  return onFailureTimeoutSeconds ?? secondsIn('GOOSE_RECIPE_ON_FAILURE_TIMEOUT_SECONDS') ?? 600
}

function secondsIn(variable: string): number | undefined {
  const said = process.env[variable]?.trim() ?? ''
  return /^[1-9]\d{0,8}$/.test(said) ? Number(said) : undefined
}
