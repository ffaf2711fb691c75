// Evaluates to a function of the variables that makes the global object ready and returns the class BpmnError.
// It keeps what it needs in constants: the script may replace any function that it can reach.
(variables) => {
  const { construct, defineProperty } = Reflect;
  const define = (object, name, value) =>
    defineProperty(object, name, { value, writable: true, enumerable: false, configurable: true });

  const noClock = () => {
    throw new TypeError("a script has no clock: pass the time in as a variable");
  };
  const RealDate = Date;
  function ScriptDate(...parts) {
    if (new.target === undefined || parts.length === 0) noClock();
    return construct(RealDate, parts, new.target);
  }
  define(ScriptDate, "name", "Date");
  defineProperty(ScriptDate, "prototype", { value: RealDate.prototype, writable: false });
  define(RealDate.prototype, "constructor", ScriptDate);
  define(ScriptDate, "now", noClock);
  define(ScriptDate, "parse", RealDate.parse);
  define(ScriptDate, "UTC", RealDate.UTC);
  define(globalThis, "Date", ScriptDate);

  define(Math, "random", () => {
    throw new TypeError("a script has no chance: pass a random number in as a variable");
  });

  class BpmnError extends Error {
    constructor(code, message = "", variables = undefined) {
      super(message);
      this.code = code;
      this.variables = variables;
    }
  }
  define(BpmnError.prototype, "name", "BpmnError");
  define(globalThis, "BpmnError", BpmnError);

  const show = (name, value) => {
    if (name in globalThis) return;
    defineProperty(globalThis, name, { value, writable: false, enumerable: true, configurable: true });
  };
  show("variables", Object.freeze(variables));
  for (const name of Object.keys(variables)) show(name, variables[name]);
  return BpmnError;
}
