import { DefinitionError } from '../../base/error.ts'
import { code, readOptions } from '../../base/options.ts'
import { Runtime } from '../../runtime.ts'
import type { Redact } from './clean.ts'
import { Recorder } from './recorder.ts'
import { type ReadRecording, RecordingWriter, readIfThere } from './recording-file.ts'

export interface RecordOptions {
  /** Takes out of each text what must not be in the file, beside what is taken out anyway. */
  readonly redact?: Redact
}

/**
 * Writes every answer of a model and every result of a tool of this runtime's runs into a file, for `replay`. A file whose
 * runs are in the runtime's store is gone on with, as after a crash; any other recording is begun anew with the first
 * answer. Gives the runtime; closing it closes the file.
 */
export function record(runtime: Runtime, file: string, options: RecordOptions = {}): Runtime {
  if (!(runtime instanceof Runtime)) {
    throw new DefinitionError('definition', 'record(runtime, file): make the runtime with createRuntime().')
  }
  readOptions('record(runtime, file, options)', options, { redact: code })
  const { store } = runtime
  const known = readIfThere(file)
  const isOurs = known?.lines.some(({ line }) => 'run' in line && store.conversation(line.id) !== undefined) === true
  const writer = new RecordingWriter(file, isOurs ? (known?.size ?? 0) : null)
  runtime.useTape(new Recorder({ store, writer, redact: options.redact, known: isOurs ? known : NONE }))
  return runtime
}

const NONE: ReadRecording | null = null
