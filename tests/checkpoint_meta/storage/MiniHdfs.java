import java.io.BufferedReader;
import java.io.File;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.SafeModeAction;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.hdfs.MiniDFSNNTopology;
import org.apache.hadoop.hdfs.protocol.HdfsConstants;
import org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider;
import org.apache.hadoop.security.Credentials;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.MiniYARNCluster;

/**
 * A NameNode and two DataNodes. Each line of the input is a command, and is answered by a line.
 *
 * Its arguments are a folder, and settings. With "pair" there are two NameNodes, the name service
 * "lake"; with "yarn" a ResourceManager and a NodeManager; with "secured" what the settings say. The
 * folder then has the configuration of a client, "core-site.xml" and "yarn-site.xml".
 */
public class MiniHdfs {
    public static void main(String[] arguments) {
        try {
            serve(arguments);
            System.exit(0);
        } catch (Throwable error) {
            error.printStackTrace();
            // The threads of a half of the cluster would keep the process.
            System.exit(1);
        }
    }

    private static void serve(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        // Of the log, which is not to be taken for an answer.
        System.setOut(System.err);
        Set<String> kinds = new HashSet<>();
        Configuration configuration = new Configuration();
        // The two are one rack of one machine, so that a lost one is noticed within seconds.
        configuration.setInt("dfs.heartbeat.interval", 1);
        configuration.setInt("dfs.namenode.heartbeat.recheck-interval", 1000);
        configuration.setBoolean("dfs.client.block.write.replace-datanode-on-failure.enable", false);
        for (String argument : Arrays.copyOfRange(arguments, 1, arguments.length)) {
            String[] setting = argument.split("=", 2);
            if (setting.length == 2) {
                configuration.set(setting[0], setting[1]);
            } else {
                kinds.add(argument);
            }
        }
        File folder = new File(arguments[0]);
        MiniDFSCluster.Builder builder = new MiniDFSCluster.Builder(configuration, folder).numDataNodes(2);
        if (kinds.contains("pair")) {
            builder.nnTopology(MiniDFSNNTopology.simpleHATopology());
        }
        cluster = builder.build();
        if (kinds.contains("pair")) {
            cluster.transitionToActive(0);
            configuration.set("fs.defaultFS", "hdfs://lake");
            configuration.set("dfs.nameservices", "lake");
            configuration.set("dfs.ha.namenodes.lake", "0,1");
            configuration.set("dfs.client.failover.proxy.provider.lake",
                ConfiguredFailoverProxyProvider.class.getName());
            for (int number = 0; number < 2; number++) {
                configuration.set("dfs.namenode.rpc-address.lake." + number,
                    cluster.getNameNode(number).getNameNodeAddressHostPortString());
            }
        }
        cluster.waitActive();
        files = (DistributedFileSystem) FileSystem.get(configuration);
        files.setPermission(new Path("/"), new FsPermission((short) 0777));
        if (!kinds.isEmpty()) {
            write(configuration, new File(folder, "core-site.xml"));
        }
        if (kinds.contains("yarn")) {
            MiniYARNCluster yarn = new MiniYARNCluster("yarn", 1, 1, 1);
            yarn.init(new YarnConfiguration(configuration));
            yarn.start();
            write(yarn.getConfig(), new File(folder, "yarn-site.xml"));
        }
        answers.println(cluster.getNameNodePort(0));
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            answers.println(answer(line.split(" ")));
        }
    }

    private static void write(Configuration configuration, File file) throws Exception {
        Configuration client = new Configuration(configuration);
        // A class of the mini cluster.
        client.unset("net.topology.node.switch.mapping.impl");
        try (FileOutputStream out = new FileOutputStream(file)) {
            client.writeXml(out);
        }
    }

    private static MiniDFSCluster cluster;
    private static DistributedFileSystem files;
    private static MiniDFSCluster.DataNodeProperties stopped;

    private static String answer(String[] words) throws Exception {
        switch (words[0]) {
            case "failover":
                // The first one hands over, or ends; the second one takes over, and back.
                int active = cluster.getNameNode(0) != null && cluster.getNameNode(0).isActiveState() ? 0 : 1;
                if (words[1].equals("end")) {
                    cluster.shutdownNameNode(active);
                } else {
                    cluster.transitionToStandby(active);
                }
                cluster.transitionToActive(1 - active);
                if (words[1].equals("end")) {
                    cluster.restartNameNode(active, false);
                }
                break;
            case "safe":
                files.setSafeMode(words[1].equals("on") ? SafeModeAction.ENTER : SafeModeAction.LEAVE);
                break;
            case "quota":
                long bytes = words.length > 3 ? Long.parseLong(words[3]) : HdfsConstants.QUOTA_DONT_SET;
                files.mkdirs(new Path(words[1]));
                files.setQuota(new Path(words[1]), Long.parseLong(words[2]), bytes);
                break;
            case "mode":
                files.setPermission(new Path(words[1]), new FsPermission(words[2]));
                break;
            case "age":
                files.setTimes(new Path(words[1]), Long.parseLong(words[2]), -1);
                break;
            case "stop":
                // The one that has the only copy, or the first copy, of a file.
                String holder = files.getFileBlockLocations(new Path(words[1]), 0, 1)[0].getNames()[0];
                stopped = cluster.stopDataNode(holder);
                break;
            case "start":
                cluster.restartDataNode(stopped, true);
                cluster.waitActive();
                break;
            case "tokens":
                Credentials credentials = new Credentials();
                files.addDelegationTokens("nobody", credentials);
                credentials.writeTokenStorageFile(new Path("file://" + words[1]), new Configuration());
                break;
            case "copies":
                files.setReplication(new Path(words[1]), (short) Integer.parseInt(words[2]));
                break;
            default:
                return "unknown " + words[0];
        }
        return "done";
    }
}
