import { messageOf } from '../../base/error.ts'
import type { NodeRun } from '../node-run.ts'
import type { ExtensionCore } from './extension.ts'
import type { HookPlace } from './extension-runs.ts'
import { each, type Given } from './given.ts'
import type { HookContext, HookName } from './hooks.ts'

/** An extension that is not to be gone on without has failed. */
export class ExtensionFailed extends Error {
  constructor({ name }: ExtensionCore, hook: HookName, cause: unknown) {
    super(`The extension "${name}" failed in ${hook}: ${messageOf(cause)}`, { cause })
  }
}

export function placeOf({ node, work }: NodeRun): HookPlace {
  return { runId: node.turnId, nodeId: node.id, purpose: node.purpose, work }
}

export function contextFor(run: NodeRun, extension: ExtensionCore): HookContext {
  return run.home.extensionRuns.contextOf(extension, placeOf(run))
}

export interface HookCall<T> {
  readonly hook: HookName
  call(extension: ExtensionCore, context: HookContext): Given<T>
  use(value: T, extension: ExtensionCore): void
}

/**
 * Calls a hook of every extension that has it, one after the other, and uses what each gives; at once where nothing has
 * to be waited for. What a hook throws is told of, and goes no further unless its extension wants the run to fail.
 */
export function callHooks<T>(run: NodeRun, { hook, call, use }: HookCall<T>): void | Promise<void> {
  const extensions = run.hooks?.of(hook) ?? []
  for (const [at, extension] of extensions.entries()) {
    const called = callOne(run, extension, { hook, call, use })
    if (called !== undefined) return callRest(run, { called, rest: extensions.slice(at + 1) }, { hook, call, use })
  }
  return undefined
}

async function callRest<T>(
  run: NodeRun,
  { called, rest }: { readonly called: Promise<void>; readonly rest: readonly ExtensionCore[] },
  hookCall: HookCall<T>,
): Promise<void> {
  await called
  for (const extension of rest) await callOne(run, extension, hookCall)
}

function callOne<T>(run: NodeRun, extension: ExtensionCore, { hook, call, use }: HookCall<T>): void | Promise<void> {
  try {
    const given = each(call(extension, contextFor(run, extension)), (value) => use(value, extension))
    return given === undefined
      ? undefined
      : given.catch((error: unknown) => hookFailed(run, extension, { hook, error }))
  } catch (error) {
    return hookFailed(run, extension, { hook, error })
  }
}

/** Tells of it; throws where the extension is not to be gone on without. */
export async function hookFailed(
  run: NodeRun,
  extension: ExtensionCore,
  { hook, error }: { readonly hook: HookName; readonly error: unknown },
): Promise<void> {
  await run.home.extensionRuns.report(extension, { hook, error }, placeOf(run))
  if (extension.onError === 'fail') throw new ExtensionFailed(extension, hook, error)
}
