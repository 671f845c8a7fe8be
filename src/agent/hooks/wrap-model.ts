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
  const model: AskedModel = { isAsked: false, thrown: new Set() }
  let hasSaid = false
  try {
    const given = await extension.hooks?.wrapModel?.(request, remembering(next, model), contextFor(run, extension))
    for await (const part of partsOf(given)) {
      hasSaid = true
      yield part
    }
    if (!hasSaid && !model.isAsked) throw noAnswer('no parts')
    return
  } catch (error) {
    if (model.thrown.has(error) || run.work.stopCause !== null) throw error
    await hookFailed(run, extension, { hook: 'wrapModel', error })
    if (hasSaid) throw new ExtensionFailed(extension, 'wrapModel', error)
  }
  yield* next(request)
}

interface AskedModel {
  isAsked: boolean
  readonly thrown: Set<unknown>
}

function remembering(next: NextModel, model: AskedModel): NextModel {
  return async function* (request) {
    model.isAsked = true
    try {
      yield* next(request)
    } catch (error) {
      model.thrown.add(error)
      throw error
    }
  }
}

async function* partsOf(said: Awaited<ModelAnswer> | undefined): AsyncGenerator<Part> {
  if (typeof said === 'string') {
    yield { type: 'text-delta', text: said }
    yield { type: 'finish', reason: 'stop', usage: NO_USAGE }
    return
  }
  if (typeof said !== 'object' || said === null) throw noAnswer(typeof said)
  const parts = Symbol.asyncIterator in said || Symbol.iterator in said ? said : [said]
  for await (const part of parts) yield checkedPart(part)
}

function checkedPart(part: Part): Part {
  if (typeof part !== 'object' || part === null) throw noAnswer(`a part that is ${typeof part}`)
  if (typeof part.type !== 'string') throw noAnswer(`{ ${Object.keys(part).slice(0, MOST_KEYS).join(', ')} }`)
  return part
}

const MOST_KEYS = 5

function noAnswer(given: string): Error {
  return new Error(`wrapModel gave no answer but ${given}: return next(request), a text or parts`)
}
