import { NO_USAGE } from '../../graph/content.ts'
import type { ModelRequest, Part } from '../../model/model.ts'
import type { NodeRun } from '../node-run.ts'
import { contextFor, ExtensionFailed, hookFailed } from './call-hooks.ts'
import type { ExtensionCore } from './extension.ts'
import type { ModelAnswer, NextModel } from './hooks.ts'

/** The model with every `wrapModel` around it, the first one outermost. */
export function wrappedModel(run: NodeRun, model: NextModel): NextModel {
  const wrappers = run.hooks?.of('wrapModel') ?? []
  return wrappers.reduceRight<NextModel>((next, extension) => wrapped(run, extension, next), model)
}

function wrapped(run: NodeRun, extension: ExtensionCore, next: NextModel): NextModel {
  return (request) => answered(run, extension, { request, next })
}

interface Wrapping {
  readonly request: ModelRequest
  readonly next: NextModel
}

/** A wrapper that fails before it has said anything is left out; what the model itself throws is the model's. */
async function* answered(run: NodeRun, extension: ExtensionCore, { request, next }: Wrapping): AsyncGenerator<Part> {
  const thrown = new Set<unknown>()
  let hasSaid = false
  try {
    const given = await extension.hooks?.wrapModel?.(request, remembering(next, thrown), contextFor(run, extension))
    if (given == null) throw new Error('it gave no answer: return next(request), a text or parts')
    for await (const part of partsOf(given)) {
      hasSaid = true
      yield part
    }
    return
  } catch (error) {
    if (thrown.has(error) || run.work.stopCause !== null) throw error
    await hookFailed(run, extension, { hook: 'wrapModel', error })
    if (hasSaid) throw new ExtensionFailed(extension, 'wrapModel', error)
  }
  yield* next(request)
}

function remembering(next: NextModel, thrown: Set<unknown>): NextModel {
  return async function* (request) {
    try {
      yield* next(request)
    } catch (error) {
      thrown.add(error)
      throw error
    }
  }
}

async function* partsOf(said: Awaited<ModelAnswer>): AsyncGenerator<Part> {
  if (typeof said === 'string') {
    yield { type: 'text-delta', text: said }
    yield { type: 'finish', reason: 'stop', usage: NO_USAGE }
    return
  }
  if (Symbol.asyncIterator in said || Symbol.iterator in said) yield* said
  else yield said
}
