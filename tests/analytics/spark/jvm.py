"""The environment of JVMs that tests start."""

# They run for seconds: the second compiler and a collector with threads cost more than they bring.
SHORT_LIVED = {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"}
