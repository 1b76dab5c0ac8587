"""The environment of JVMs that tests start."""

# They run for seconds, for which the second compiler and a multithreaded collector do not pay off.
SHORT_LIVED = {
    "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m -Xshare:auto"
}
